"""Ranks' metrics of this run and of the reference, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cases.case import Case, Recording
from harness.diagnosers.features.arrays import MOST, Floats
from harness.diagnosers.features.collectives import collective_metrics
from harness.diagnosers.features.devices import device_metrics
from harness.diagnosers.features.events import event_metrics
from harness.diagnosers.features.hosts import host_metrics, network_metrics, process_metrics
from harness.diagnosers.features.loaders import loader_metrics
from harness.diagnosers.features.metrics import METRICS
from harness.diagnosers.features.steps import mean_step_ns, step_count, step_metrics

SHARES = {
    "expert_share": "expert_tokens",
    "embedding_share": "embedding_rows",
    "length_share": "length_squares",
}


@dataclass(frozen=True)
class Compared:
    """Ranks' metrics: frames with one row a rank and the columns of `METRICS`.

    Attributes:
        now: Values in this run; times as shares of its own mean step.
        change: Change from the reference run by the metric's unit; NaN without a reference.
        slowdown: Mean step over that of the reference; NaN without one.
    """

    now: pd.DataFrame
    change: pd.DataFrame
    slowdown: float


def compare(case: Case) -> Compared:
    """Measure both runs of a case."""
    now, step_ns = rank_metrics(case, case)
    timed = np.array([METRICS[name].unit == "step" for name in now.columns])
    shares = _one_block(now.div(np.where(timed, step_ns, 1.0)))
    if case.reference is None:
        return Compared(shares, _one_block(now * np.nan), float("nan"))
    then, then_ns = rank_metrics(case.reference, case)
    change = (now - then).div(np.where(timed, then_ns, 1.0))
    for name in now.columns:
        if METRICS[name].unit == "ratio":
            change[name] = _quotient(now[name].to_numpy(), then[name].to_numpy())
    return Compared(shares, _one_block(change), step_ns / then_ns)


def _one_block(frame: pd.DataFrame) -> pd.DataFrame:
    """The same in one array, which is ten times as fast to reduce."""
    return pd.DataFrame(frame.to_numpy(np.float64), frame.index, frame.columns)


def _quotient(now: Floats, then: Floats) -> Floats:
    """Ratios of what is not negative; 1 where both are 0, `MOST` where only `then` is."""
    known = np.where(then > 0, now / np.where(then > 0, then, 1.0), np.where(now > 0, MOST, 1.0))
    return np.where(np.isnan(now) | np.isnan(then), np.nan, np.minimum(known, MOST))


def rank_metrics(run: Recording, case: Case) -> tuple[pd.DataFrame, float]:
    """Return all metrics of a run, in their units, and its mean step in ns."""
    places = case.info.topology.ranks
    ranks = [place.rank for place in places]
    hosts = {place.rank: place.host for place in places}
    steps, step_ns = step_count(run), mean_step_ns(run)
    parts = [
        step_metrics(run),
        collective_metrics(run, steps),
        device_metrics(run, step_ns),
        process_metrics(run, step_ns),
        host_metrics(run, hosts),
        network_metrics(run, steps),
        loader_metrics(run),
        event_metrics(run, ranks, steps),
    ]
    joined = pd.concat([part.reindex(ranks) for part in parts if len(part.columns)], axis=1)
    out = joined.reindex(columns=list(METRICS)).astype(np.float64)
    out["own"] = out["duration"] - out["joined"].fillna(0)
    out["computing"] = out["forward"] + out["backward"]
    for name, of in SHARES.items():
        out[name] = out[of] / out[of].mean()
    out["padded"] = out["tokens"] / out["length_sum"]
    return out, step_ns
