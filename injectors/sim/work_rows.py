"""How much work each rank has in a step: the rows of `Conditions.work_q16`, by their names.

- "constant": 1.
- "tokens", and what a served model's steps hold: 1, with the spread of healthy steps and ranks.
- "attention": the squared lengths of its sequences over their mean.
- "experts": the tokens of its experts; "rows": the embedding rows that it serves.
- "pcie": copies between host and device; "checkpoint": the same, 0 in steps that save nothing.

A name with a dot ("graph.gemm") is a row of a served model: its last part says which.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

import numpy as np

from injectors.sim import noise
from injectors.sim.job import ONE, Job
from injectors.sim.pauses import saves
from injectors.sim.program import Ints, Program

RANK_SIGMA_Q16 = 197  # healthy ranks differ by 0.3 % for good
MICRO_SIGMA_Q16 = 1311  # and by 2 % from micro-batch to micro-batch
EXPERT_SIGMA_Q16, ROW_SIGMA_Q16 = 1966, 1311  # 3 % and 2 %: routing is never quite even
LEAST_Q16 = ONE // 4
REMOTE_COPY_Q16 = 91750  # 1.4: a copy crosses to the other socket's memory
SOCKET_BYTES_PER_S = 40 * 10**9  # of the links between two sockets, one direction
SERVED = ("gemm", "tokens", "kv", "prefill", "mask")


class WorkRows:
    """Fills the rows of a program in every step."""

    def __init__(self, job: Job, program: Program, shared_q16: Ints) -> None:
        self._job, self._which = job, np.arange(program.ranks)
        # Micro-batches differ by themselves; a step has the mean of its own.
        self._step_sigma_q16 = MICRO_SIGMA_Q16 * 256 // isqrt(max(program.batches, 1) << 16)
        of = noise.keys(job.seed, "work of a rank", self._which)
        self._rank_q16 = ONE + noise.normal_q16(of, RANK_SIGMA_Q16)
        self._pcie_q16 = _pcie_q16(job) * shared_q16 >> 16
        self._experts = self._share(job.routing.expert_share_q16)
        self._served = self._share(job.routing.row_share_q16)
        kinds: dict[str, Callable[[int], Ints]] = {
            "constant": lambda step: np.full_like(self._rank_q16, ONE),
            "attention": self._attention,
            "experts": lambda step: self._routed("experts", step, self._experts, EXPERT_SIGMA_Q16),
            "rows": lambda step: self._routed("rows", step, self._served, ROW_SIGMA_Q16),
            "pcie": lambda step: self._pcie_q16,
            "checkpoint": lambda step: self._pcie_q16 * saves(job, step),
            **dict.fromkeys(SERVED, self._tokens),
        }
        names = [name.rpartition(".")[2] for name in program.work_rows]
        unknown = [name for name in names if name not in kinds]
        if unknown:
            raise ValueError(f"work rows must be among {sorted(kinds)}, got {unknown}")
        self._rows = [kinds[name] for name in names]
        self._now: tuple[int, Ints] = (-1, self._rank_q16)

    def of(self, step: int) -> Ints:
        """Return the step's rows, (rows, ranks)."""
        return np.stack([row(step) for row in self._rows])

    def _tokens(self, step: int) -> Ints:
        if self._now[0] != step:
            of = noise.extend(noise.key(self._job.seed, "work", step), self._which)
            spread = ONE + noise.normal_q16(of, self._step_sigma_q16)
            self._now = step, self._rank_q16 * spread >> 16
        return self._now[1]

    def _attention(self, step: int) -> Ints:
        """Rows are packed to equal tokens; the sum of squared lengths is what differs."""
        spread_q16 = self._job.framework.length_spread_q16
        if not spread_q16:
            return self._tokens(step)
        of = noise.extend(noise.key(self._job.seed, "lengths", step), self._which)
        squares = np.maximum(ONE + noise.normal_q16(of, spread_q16), LEAST_Q16)
        return self._tokens(step) * squares >> 16

    def _routed(self, name: str, step: int, share_q16: Ints, sigma_q16: int) -> Ints:
        of = noise.extend(noise.key(self._job.seed, name, step), self._which)
        return share_q16 * noise.factor_q16(of, sigma_q16) >> 16

    def _share(self, given: dict[int, int]) -> Ints:
        return np.array([given.get(rank, ONE) for rank in self._which.tolist()], np.int64)


def _pcie_q16(job: Job) -> Ints:
    """How much longer copies between host and device take, (ranks,)."""
    host, found = job.host, np.full(job.places.ranks, ONE, np.int64)
    for rank in range(job.places.ranks):
        found[rank] = ONE * ONE // max(job.gpus.pcie_q16.get(rank, ONE), 1)
        traffic = host.memory_traffic_q16.get(job.places.host(rank), ONE)
        found[rank] = found[rank] * traffic >> 16
        if rank in host.remote_memory:
            found[rank] = found[rank] * _remote_q16(job, job.places.host(rank)) >> 16
    return found


def _remote_q16(job: Job, host: int) -> int:
    """How much longer copies take from the other socket's memory, over the link that all share."""
    gpu = job.machine.gpu
    sharing = sum(job.places.host(rank) == host for rank in job.host.remote_memory)
    wanted = sharing * gpu.pcie_bytes_per_s if gpu else 0
    return max(REMOTE_COPY_Q16, wanted * ONE // SOCKET_BYTES_PER_S)
