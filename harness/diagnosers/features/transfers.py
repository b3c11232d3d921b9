"""How long transfers take of themselves, by kind, once all members of a collective are there.

Calls are of one kind if group, operation and size agree. The last to arrive waits for nobody, so
the least time among a call's members is the transfer's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cases.case import Recording
from harness.diagnosers.features.arrays import (
    Floats,
    Groups,
    combined,
    floats_of,
    ratio,
    reduced,
)
from harness.diagnosers.features.collectives import began_ns, call_numbers, kind_numbers
from harness.diagnosers.features.steps import step_count

SMALL_BYTES, LARGE_BYTES = 2**16, 2**20
GROWN = 1.03  # times as long as in the reference
UNLIKE = 0.6  # share of the larger one's bytes up to which two kinds are of unlike size
NUMBERS = (
    *("transfer_growth", "small_growth", "large_growth", "kinds_most", "kinds_least"),
    *("grown_alike", "transfer_unsteady", "transfer_unsteady.growth"),
)


@dataclass(frozen=True)
class Kind:
    """One kind of calls: medians and sums of its transfers in ns; `spread` is q90 / q10."""

    group: str | None
    operation: str | None
    bytes: int | None
    ns: float
    step_ns: float
    spread: float

    @property
    def key(self) -> tuple[str | None, str | None, int | None]:
        """What makes it the same kind in another run."""
        return self.group, self.operation, self.bytes


def transfer_kinds(run: Recording) -> list[Kind]:
    """Return the kinds of calls that a run has."""
    table, steps = run.arrow("collectives"), step_count(run)
    if not len(table) or not steps:
        return []
    kinds = combined(kind_numbers(table))
    calls = combined(kinds.index, call_numbers(table))
    least = calls.least(floats_of(table, "completed_ns") - began_ns(table))
    groups = Groups(calls.common(kinds.index), kinds.number)
    low, high = groups.quantile(least, 0.1), groups.quantile(least, 0.9)
    rows = table.take(kinds.common(np.arange(len(table))))
    return [
        Kind(*values)
        for values in zip(
            *(rows[name].to_pylist() for name in ("process_group", "op", "bytes")),
            groups.median(least).tolist(),
            (groups.sum(least) / steps).tolist(),
            (high / np.where(low > 0, low, np.nan)).tolist(),
            strict=True,
        )
    ]


def transfer_numbers(now: Iterable[Kind], then: Iterable[Kind]) -> dict[str, float]:
    """Compare kinds that both runs have; `then` may be this run's own.

    transfer_growth: time of all kinds; small_growth, large_growth: medians of kinds below 64 KiB
    and from 1 MiB on; kinds_most, kinds_least: greatest and least growth of large kinds;
    grown_alike: of the grown kinds of an operation, ns by which the smallest grew over ns by which
    the largest did (latency adds as much to both);
    transfer_unsteady: spread within kinds, weighted by time, and its growth.
    """
    before = {kind.key: kind for kind in then}
    both = [(kind, before[kind.key]) for kind in now if kind.key in before]
    both = [(kind, old) for kind, old in both if kind.ns > 0 and old.ns > 0]
    if not both:
        return {}
    growth = np.array([kind.ns / old.ns for kind, old in both])
    payload = np.array([np.nan if kind.bytes is None else kind.bytes for kind, _ in both])
    took = np.array([kind.step_ns for kind, _ in both])
    took_before = float(sum(old.step_ns for _, old in both))
    large = growth[payload >= LARGE_BYTES]
    weights = took / took.sum()
    unsteady = _weighted([kind.spread for kind, _ in both], weights)
    usual = _weighted([old.spread for _, old in both], weights)
    return {
        "transfer_growth": ratio(float(took.sum()), took_before),
        "small_growth": reduced(growth[payload < SMALL_BYTES], np.median),
        "large_growth": reduced(large, np.median),
        "kinds_most": reduced(large, np.max),
        "kinds_least": reduced(large, np.min),
        "grown_alike": _alike(both),
        "transfer_unsteady": unsteady,
        "transfer_unsteady.growth": ratio(unsteady, usual),
    }


def _weighted(spreads: list[float], weights: Floats) -> float:
    return float(np.nansum(np.array(spreads) * weights))


def _alike(both: Iterable[tuple[Kind, Kind]]) -> float:
    """Growth in ns of the smallest grown kind over the largest's, the most over operations."""
    grown = [(kind, old) for kind, old in both if kind.ns / old.ns > GROWN]
    shares = []
    for operation in {kind.operation for kind, _ in grown if kind.operation is not None}:
        ordered = [pair for pair in grown if pair[0].operation == operation]
        ordered.sort(key=lambda pair: np.inf if pair[0].bytes is None else pair[0].bytes)
        (small, small_before), (large, large_before) = ordered[0], ordered[-1]
        if large.bytes is not None and (small.bytes or 0) < UNLIKE * large.bytes:
            shares.append((small.ns - small_before.ns) / (large.ns - large_before.ns))
    return max(shares, default=float("nan"))
