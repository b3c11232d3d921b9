"""Learning when a second rule that holds tells of a second fault; see harness.diagnosers.forest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.diagnosers.features.arrays import Floats
from harness.diagnosers.forest.columns import by_class, case_row
from harness.diagnosers.forest.second import others, rows
from harness.training.causes import cause_trees
from harness.training.samples import Sample

FOLDS = 5
Counts = tuple[dict[str, int], dict[str, dict[str, int]]]


def count_echoes(samples: Sequence[Sample]) -> Counts:
    """Count cases of each lone fault, and those of them in which other rules hold as well."""
    alone: Counter[str] = Counter()
    echoes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sample in samples:
        if len(sample.label.faults) == 1:
            cause = sample.label.faults[0].cause
            alone[cause] += 1
            echoes[cause].update({rule.cause for _, rule in others(sample.seen, cause)})
    return dict(sorted(alone.items())), {
        cause: dict(sorted(of.items())) for cause, of in sorted(echoes.items())
    }


def grow_second(faulty: Sequence[Sample], features: Sequence[str]) -> Any:
    """Fit what weighs a second rule; None where too few cases have two faults.

    What is weighed of a case comes from trees and counts that have not seen its group.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    groups = [sample.label.group for sample in faulty]
    folds = min(FOLDS, len(set(groups)))
    if folds < 2:
        return None
    weighed: list[Floats] = []
    right: list[bool] = []
    for known, left in GroupKFold(folds).split(faulty, groups=groups):
        of, out = [faulty[i] for i in known], [faulty[i] for i in left]
        trees, (alone, echoes) = cause_trees(of, features), count_echoes(of)
        shares = trees.predict_proba(np.concatenate([case_row(s.seen, features) for s in out]))
        for sample, share in zip(out, shares, strict=True):
            if sample.seen.rules:
                first = sample.seen.rules[0].cause
                found = others(sample.seen, first)
                weighed.append(rows(found, by_class(trees, share), first, alone, echoes))
                true = {fault.cause for fault in sample.label.faults}
                right += [rule.cause in true for _, rule in found]
    if len(set(right)) < 2:
        return None
    return LogisticRegression().fit(np.concatenate(weighed), right)
