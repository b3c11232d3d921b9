"""How much of each kind of device work a step holds: the rows of its conditions.

Products with weights take as long as reading the weights or as the arithmetic of the step's
tokens, whichever is longer; the two meet at `ridge` tokens. All else grows with the tokens,
with the keys and values that decoding reads, or with the pairs of tokens of prefilling.
"""

from __future__ import annotations

import numpy as np

from injectors.sim.costs import Costs
from injectors.sim.job import ONE, Job
from injectors.sim.program import Conditions, Ints, Program
from injectors.sim.serving.kernels import CONTEXT, PAIRS, ROWS, TOKENS
from injectors.sim.serving.plan import Plan
from injectors.sim.serving.writer import TENSOR

LARGEST_GRAPH = 512  # tokens for which a graph was captured; a larger step launches its kernels
FRACTION = 256  # of a token, in the ridge


def padded(tokens: int) -> int:
    """Return the size of the graph that a step of so many tokens replays.

    >>> [padded(tokens) for tokens in (1, 3, 9, 48)]
    [1, 4, 16, 48]
    """
    if tokens <= 4:
        return 1 << (tokens - 1).bit_length()
    return -(-tokens // 8) * 8


class StepWork:
    """Turns plans into rows of conditions."""

    def __init__(self, job: Job, program: Program) -> None:
        costs = Costs(job.machine, job.framework)
        self._ridge = FRACTION * costs.flops_per_s * costs.element_bytes // (2 * costs.bytes_per_s)
        self._graphs = job.framework.graphs
        self._rows = {name: number for number, name in enumerate(program.work_rows)}
        rows = program.transfer_rows
        self._tensor = rows.index(TENSOR) if TENSOR in rows else None

    def fill(self, conditions: Conditions, plan: Plan) -> None:
        """Write what `plan` computes into the rows that are the engine's own."""
        for name in ("copy.mask", "apply.mask"):
            self._set(conditions, name, _share(plan.constrained, ROWS))
        self._logits(conditions, plan.answers + plan.draft_tokens)
        drafting = plan.draft_tokens // plan.draft_passes if plan.draft_passes else 0
        self._decode(conditions, "draft", padded(drafting) if drafting else 0, plan)
        graph = self._graphs and not plan.prefill_tokens and plan.tokens <= LARGEST_GRAPH
        tokens = padded(plan.tokens) if graph else plan.tokens
        self._decode(conditions, "graph", tokens if graph else 0, plan)
        self._launched(conditions, 0 if graph else tokens, plan)
        if self._tensor is not None:
            share = conditions.transfer_q16[self._tensor]
            conditions.transfer_q16[self._tensor] = share * tokens // TOKENS

    def _set(self, conditions: Conditions, name: str, value: int | Ints) -> None:
        """Scale a row, which so far holds how ranks and steps differ by themselves."""
        if name in self._rows:
            row = conditions.work_q16[self._rows[name]]
            # Most of them are nothing: a step takes one way of two.
            nothing = isinstance(value, int) and not value
            row[:] = 0 if nothing else np.maximum(row * value >> 16, np.minimum(value, 1))

    def _decode(self, conditions: Conditions, way: str, tokens: int, plan: Plan) -> None:
        """A graph's rows; nominal is reading the weights."""
        on = tokens > 0
        self._set(conditions, f"{way}.gemm", self._weights_q16(conditions, tokens) if on else 0)
        self._set(conditions, f"{way}.tokens", _share(tokens, TOKENS))
        context = plan.context_tokens if on else 0
        self._set(conditions, f"{way}.kv", _share(context, CONTEXT))

    def _launched(self, conditions: Conditions, tokens: int, plan: Plan) -> None:
        """Rows of kernels launched one by one; nominal is the arithmetic of TOKENS tokens."""
        on = tokens > 0
        self._set(conditions, "eager.gemm", self._arithmetic_q16(conditions, tokens) if on else 0)
        self._set(conditions, "eager.tokens", _share(tokens, TOKENS))
        self._set(conditions, "eager.kv", _share(plan.context_tokens if on else 0, CONTEXT))
        self._set(conditions, "eager.prefill", _share(plan.attention_pairs if on else 0, PAIRS))

    def _logits(self, conditions: Conditions, rows: int) -> None:
        on = rows > 0
        self._set(conditions, "sample.gemm", self._weights_q16(conditions, rows) if on else 0)
        self._set(conditions, "sample.tokens", _share(rows, ROWS))

    def _weights_q16(self, conditions: Conditions, tokens: int) -> Ints:
        """Time of a product over that of reading its weights, on each rank."""
        arithmetic = tokens * FRACTION * ONE * conditions.clock_q16
        found: Ints = np.maximum(arithmetic // (self._ridge * conditions.memory_q16), ONE)
        return found

    def _arithmetic_q16(self, conditions: Conditions, tokens: int) -> Ints:
        """Time of a product over that of the arithmetic of TOKENS tokens, on each rank."""
        weights = self._ridge * ONE * conditions.memory_q16 // conditions.clock_q16
        found: Ints = np.maximum(tokens * ONE, weights // FRACTION) // TOKENS
        return found


def _share(amount: int, nominal: int) -> int:
    """Amount over nominal in Q16; what is there at all is more than nothing."""
    return max(amount * ONE // nominal, 1) if amount else 0
