"""How long transfers take of themselves, by kind, once all members of a collective are there.

Calls are of one kind if group, operation and size agree. The last to arrive waits for nobody, so
the least time among a call's members is the transfer's.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from cases.case import Recording
from harness.diagnosers.features.arrays import ratio
from harness.diagnosers.features.collectives import began_ns, call_numbers, floats_of, kind_numbers
from harness.diagnosers.features.steps import step_count

SMALL_BYTES, LARGE_BYTES = 2**16, 2**20
GROWN = 1.03  # times as long as in the reference
UNLIKE = 0.6  # share of the larger one's bytes up to which two kinds are of unlike size
KEY = ["process_group", "op", "bytes"]


def transfer_kinds(run: Recording) -> pd.DataFrame:
    """Return one row a kind: `ns` (median), `step_ns` (sum of a step), `spread` (q90 / q10)."""
    table, steps = run.arrow("collectives"), step_count(run)
    if not len(table) or not steps:
        return pd.DataFrame(columns=[*KEY, "ns", "step_ns", "spread"]).astype({"ns": float})
    length = floats_of(table, "completed_ns") - began_ns(table)
    kind, call = kind_numbers(table), call_numbers(table)
    calls = pd.DataFrame({"kind": kind, "call": call, "ns": length})
    least = calls.groupby(["kind", "call"])["ns"].min().reset_index()
    groups = least.groupby("kind")["ns"]
    low, high = groups.quantile(0.1), groups.quantile(0.9)
    out = pd.DataFrame({"ns": groups.median(), "step_ns": groups.sum() / steps})
    out["spread"] = high / low.where(low > 0)
    first = pd.Series(np.arange(len(kind))).groupby(kind).first()
    rows = table.take(first.to_numpy())
    for name in KEY:
        out[name] = pd.Series(rows[name].to_pylist(), index=first.index)
    return out.reset_index(drop=True)


def transfer_numbers(now: pd.DataFrame, then: pd.DataFrame) -> dict[str, float]:
    """Compare kinds that both runs have; `then` may be this run's own.

    transfer_growth: time of all kinds; small_growth, large_growth: medians of kinds below 64 KiB
    and from 1 MiB on; kinds_most, kinds_least: greatest and least growth of large kinds;
    grown_alike: of the grown kinds of an operation, ns by which the smallest grew over ns by which
    the largest did (latency adds as much to both);
    transfer_unsteady: spread within kinds, weighted by time, and its growth.
    """
    both = now.merge(then, on=KEY, suffixes=("", "_then"))
    both = both[(both["ns"] > 0) & (both["ns_then"] > 0)]
    if not len(both):
        return {}
    growth, payload = both["ns"] / both["ns_then"], both["bytes"]
    large = growth[payload >= LARGE_BYTES]
    weights = both["step_ns"] / both["step_ns"].sum()
    unsteady = float((both["spread"] * weights).sum())
    usual = float((both["spread_then"] * weights).sum())
    return {
        "transfer_growth": ratio(float(both["step_ns"].sum()), float(both["step_ns_then"].sum())),
        "small_growth": float(growth[payload < SMALL_BYTES].median()),
        "large_growth": float(large.median()),
        "kinds_most": float(large.max()),
        "kinds_least": float(large.min()),
        "grown_alike": _alike(both.assign(growth=growth, grown=both["ns"] - both["ns_then"])),
        "transfer_unsteady": unsteady,
        "transfer_unsteady.growth": ratio(unsteady, usual),
    }


def _alike(both: pd.DataFrame) -> float:
    """Growth in ns of the smallest grown kind over the largest's, the most over operations."""
    shares = []
    for _, kinds in both[both["growth"] > GROWN].groupby("op"):
        ordered = kinds.sort_values("bytes")
        small, large = ordered.iloc[0], ordered.iloc[-1]
        if small["bytes"] < UNLIKE * large["bytes"]:
            shares.append(float(small["grown"] / large["grown"]))
    return max(shares, default=float("nan"))
