"""Recall by how much a fault costs: a diagnoser that sees only the crippling ones is little use."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scorers.causes import FOUND
from scorers.intervals import LEVEL
from scorers.metric import Metric
from scorers.rate_metrics import rate

# Band -> the lost fraction of wall time from which it counts, up to the next one.
BANDS: dict[str, float] = {"slight": 0.0, "moderate": 0.10, "severe": 0.25, "crippling": 0.50}


def bands(lost_fraction: pd.Series[float]) -> pd.Series[str]:
    """Name the band of each lost fraction; one below 0 is slight.

    >>> list(bands(pd.Series([-0.01, 0.09, 0.1, 0.25, 0.5, 1.0])))
    ['slight', 'slight', 'moderate', 'severe', 'crippling', 'crippling']
    """
    edges = [-np.inf, *list(BANDS.values())[1:], np.inf]
    return pd.cut(lost_fraction.astype(float), edges, right=False, labels=list(BANDS))


def recall_by_severity(faults: pd.DataFrame, level: float = LEVEL) -> list[Metric]:
    """Share of faults found (cause and place) in each band that has any: `recall_at_<band>`."""
    grouped = faults.groupby(bands(faults["lost_fraction"]), observed=True)
    return [rate(f"recall_at_{name}", FOUND, own, level) for name, own in grouped]
