"""Features as rows of a matrix, in the order that a forest was trained with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.diagnosers.features import Features
from harness.diagnosers.features.arrays import Floats

LIMIT = 1e12  # what is beyond says no more, and float32 holds it


def case_row(features: Features, names: Sequence[str]) -> Floats:
    """One row, NaN for what is not known."""
    row = [features.values.get(name, float("nan")) for name in names]
    return np.clip(np.array([row], dtype=np.float64), -LIMIT, LIMIT)


def rank_rows(features: Features, names: Sequence[str]) -> Floats:
    """One row a rank."""
    frame = features.ranks.reindex(columns=list(names))
    values = frame.to_numpy(dtype=np.float64)
    return np.clip(np.where(np.isinf(values), np.nan, values), -LIMIT, LIMIT)
