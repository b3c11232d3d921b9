"""The trees that tell causes apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.diagnosers.forest.columns import case_row
from harness.training.samples import Sample

SEED = 0
TREES = 80


def extra_trees(count: int, **settings: Any) -> Any:
    """Extremely randomised trees, not grown yet."""
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(count, **{"max_features": 0.3, "random_state": SEED} | settings)


def cause_trees(faulty: Sequence[Sample], features: Sequence[str]) -> Any:
    """Grow trees on faulty cases; of one with two faults each counts half."""
    rows = [case_row(sample.seen, features) for sample in faulty]
    shown = [(i, fault.cause) for i, s in enumerate(faulty) for fault in s.label.faults]
    weights = [1 / len(faulty[i].label.faults) for i, _ in shown]
    trees = extra_trees(TREES)
    stacked = np.concatenate([rows[i] for i, _ in shown])
    return trees.fit(stacked, [cause for _, cause in shown], sample_weight=weights)
