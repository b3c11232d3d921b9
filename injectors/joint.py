"""Two faults at once: whether each costs time beside the other, and how the cost is shared.

With T0 the healthy job, T1 and T2 each fault alone and T12 both, all in the same blocks:

- separate: T12/T2 and T12/T1 both pass the faulty rule, so taking either one away helps;
- redundant: neither does, but T12/T0, T1/T0 and T2/T0 do: each alone is enough to make the job
  slow, and only taking both away helps. Any one of them is then a right answer;
- unproven: anything else, which is not shipped.

The cost of each is its Shapley value of v(S) = T(S) - T0, as a fraction of T12 (Shapley, 1953).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cases.schema import Fault, Interval
from cases.truth import Validation, Witness
from injectors.label_rule import Decision, decide_from

Floats = NDArray[np.float64]
Relation = Literal["separate", "redundant", "unproven"]


@dataclass(frozen=True)
class Part:
    """What the pairs say of one of two faults: by itself, and when it is added to the other."""

    cause: str
    alone: Decision
    added: Decision


def parts(recorded: Validation) -> tuple[Part, Part]:
    """Decide both faults of a label that has two."""
    first, second = (_against(recorded, part.acceptance_s) for part in recorded.alone)
    both = _against(recorded, recorded.acceptance.treated_s)
    return (
        Part(recorded.alone[0].cause, decide_from(first), decide_from(both - second)),
        Part(recorded.alone[1].cause, decide_from(second), decide_from(both - first)),
    )


def relation(recorded: Validation) -> Relation:
    """Say how the two faults of a label relate; the joint effect has passed its own rule."""
    decided = parts(recorded)
    added = {part.added.verdict == "faulty" for part in decided}
    if added == {True}:
        return "separate"
    enough = all(part.alone.verdict == "faulty" for part in decided)
    return "redundant" if added == {False} and enough else "unproven"


def unproven(recorded: Validation) -> str | None:
    """Say with numbers why a label cannot stand, None if it can."""
    if relation(recorded) != "unproven":
        return None
    numbers = "; ".join(
        f"{part.cause} alone {part.alone}, added {part.added}" for part in parts(recorded)
    )
    return f"its two faults are neither separate nor redundant: {numbers}"


def costs(recorded: Validation, confidence: float = 0.95) -> tuple[Interval, Interval]:
    """Share the joint cost on the fresh pairs; the two add up to 1 - T0/T12.

    The interval is Student's t on the linearised share of each block.
    """
    assert recorded.fresh is not None
    base = np.asarray(recorded.fresh.baseline_s)
    alone = [np.log(np.asarray(part.fresh_s) / base) for part in recorded.alone]
    both = np.log(np.asarray(recorded.fresh.treated_s) / base)
    return (
        _share(alone[0], alone[1], both, confidence),
        _share(alone[1], alone[0], both, confidence),
    )


def _share(own: Floats, other: Floats, both: Floats, confidence: float) -> Interval:
    """Shapley share of `own`, all as ln(T/T0) per block, shape (blocks,)."""
    r_own, r_other, r_both = (math.exp(d.mean()) for d in (own, other, both))
    value = (1 + (r_own - r_other - 1) / r_both) / 2
    # Gradient of the share by the three mean logarithms.
    per_block = (r_own * own - r_other * other - (r_own - r_other - 1) * both) / (2 * r_both)
    n = len(both)
    half = stats.t.ppf((1 + confidence) / 2, n - 1) * per_block.std(ddof=1) / math.sqrt(n)
    return Interval(value=value, low=float(value - half), high=float(value + half))


def joint_witness(queries: Sequence[tuple[str, str]]) -> Witness:
    """Put the queries of several faults together: each must be true.

    >>> joint_witness([("SELECT true", "a"), ("SELECT 1", "b")]).says
    'a; and b'
    """
    asked = (f"coalesce(({' '.join(sql.split())})::BOOLEAN, false)" for sql, _ in queries)
    return Witness(
        sql=f"SELECT {' AND '.join(asked)}", says="; and ".join(says for _, says in queries)
    )


def joint_problems(recorded: Validation, faults: Sequence[Fault]) -> Iterator[str]:
    """Decide and cost a label of two faults again from its samples."""
    if [part.cause for part in recorded.alone] != [fault.cause for fault in faults]:
        yield "the trials of each fault alone must be those of its faults"
        return
    problem = unproven(recorded)
    if problem:
        yield problem
    grouped = {fault.redundancy_group for fault in faults if fault.redundancy_group}
    if bool(grouped) != (relation(recorded) == "redundant"):
        yield f"the samples say {relation(recorded)}, the label states groups {sorted(grouped)}"
    for fault, again in zip(faults, costs(recorded), strict=True):
        stated = fault.lost_fraction
        if not np.allclose(
            (again.value, again.low, again.high), (stated.value, stated.low, stated.high), rtol=1e-6
        ):
            yield f"the fresh samples give {fault.cause} {again}, the label states {stated}"


def _against(recorded: Validation, seconds: Sequence[float]) -> Floats:
    """ln(seconds / healthy) of each acceptance pair, shape (pairs,)."""
    ratios: Floats = np.log(np.asarray(seconds) / np.asarray(recorded.acceptance.baseline_s))
    return ratios
