"""A case's numbers: ranks' metrics reduced over ranks, and one row a rank."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from harness.diagnosers.features.arrays import Floats, reduced
from harness.diagnosers.features.compare import Compared
from harness.diagnosers.features.metrics import METRICS

OVER_RANKS: dict[str, Callable[[Compared, str], float]] = {
    "median": lambda both, name: reduced(both.change(name), np.median),
    "max": lambda both, name: reduced(both.change(name), np.max),
    "min": lambda both, name: reduced(both.change(name), np.min),
    "now": lambda both, name: reduced(both.now(name), np.median),
    "spread": lambda both, name: reduced(both.now(name), lambda now: now.max() - np.median(now)),
}


NAMES = frozenset(
    f"{metric}.{how}"
    for how in OVER_RANKS
    for metric in METRICS
    if not (how == "now" and METRICS[metric].unit == "ratio")  # any scale would do
)


def over_ranks(both: Compared, name: str) -> float:
    """Reduce a metric over ranks, such as `hot.max`; NaN for what is none of `NAMES`."""
    metric, _, how = name.partition(".")
    return OVER_RANKS[how](both, metric) if name in NAMES else float("nan")


def of_ranks(both: Compared) -> pd.DataFrame:
    """One row a rank: each metric's change, and how far it lies from the median rank's."""
    change = {name: both.change(name) for name in METRICS}
    scale = max(both.slowdown - 1, 0.02) if np.isfinite(both.slowdown) else 1.0
    # Times are in parts of what the job has lost.
    scales = {name: scale if METRICS[name].unit == "step" else 1.0 for name in METRICS}
    apart = {f"{name}.apart": _apart(change[name]) / scales[name] for name in METRICS}
    peers = {f"{name}.peers": _apart(both.now(name)) / scales[name] for name in METRICS}
    own = {f"{name}.change": values for name, values in change.items()}
    return pd.DataFrame(apart | peers | own, index=list(both.ranks))


def _apart(values: Floats) -> Floats:
    """How far each rank lies from the median one."""
    return np.asarray(values - reduced(values, np.median))
