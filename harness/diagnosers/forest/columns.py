"""Numbers of a case as rows of a matrix, in the order that a forest was trained with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.diagnosers.features.arrays import Floats
from harness.diagnosers.forest.observe import Observed

LIMIT = 1e12  # what is beyond says no more, and float32 holds it


def case_row(seen: Observed, names: Sequence[str]) -> Floats:
    """One row, NaN for what is not known."""
    row = [seen.values.get(name, _absent(name)) for name in names]
    return np.clip(np.array([row], dtype=np.float64), -LIMIT, LIMIT)


def rank_rows(seen: Observed, names: Sequence[str]) -> Floats:
    """One row a rank."""
    values = seen.ranks.reindex(columns=list(names)).to_numpy(dtype=np.float64)
    return np.clip(np.where(np.isinf(values), np.nan, values), -LIMIT, LIMIT)


def by_class(classifier: Any, shares: Floats) -> dict[str, float]:
    """Name the share that a classifier gives each of its classes, (classes,)."""
    return dict(zip(classifier.classes_.tolist(), shares.tolist(), strict=True))


def _absent(name: str) -> float:
    """A rule that does not hold is a 0, a number that is not known is NaN."""
    return 0.0 if name.startswith(("rule.", "first.")) else float("nan")
