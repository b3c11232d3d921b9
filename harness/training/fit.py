"""Growing a forest from samples: three classifiers, their calibration, and the threshold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from cases.bundle import Suite
from cases.schema import Diagnosis
from cases.taxonomy import Taxonomy
from harness.diagnosers.features import FEATURE_VERSION
from harness.diagnosers.features.arrays import Floats
from harness.diagnosers.forest import decide
from harness.diagnosers.forest.columns import case_row, rank_rows
from harness.diagnosers.forest.model import Forest
from harness.diagnosers.forest.withheld import lacking
from harness.training.samples import Sample, ranks_of
from scorers import Label
from scorers.judging import judge

SEED = 0
TREES = {"verdict": 30, "cause": 80, "rank": 40}
FOLDS = 5
OTHER_RANKS = 24  # ranks of one case that are shown as not being the place
USUAL = 0.9  # share of decidable cases of a kind from which on a signal is usual
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 17))
Say = Callable[[str], None]


def fit(train: Sequence[Sample], dev: Sequence[Sample], suite: Suite, say: Say) -> Forest:
    """Grow a forest on `train`, calibrate it by folds of `train`, choose a threshold on `dev`."""
    say(f"growing on {len(train)} cases")
    forest = grow(train, suite)
    shares, right = out_of_fold(train, suite, say)
    forest = replace(forest, calibration=calibration(shares, right))
    return replace(forest, threshold=best_threshold(forest, dev))


def grow(samples: Sequence[Sample], suite: Suite) -> Forest:
    """Grow the three classifiers; not calibrated, and without a threshold."""
    features = sorted({name for sample in samples for name in sample.features.values})
    rank_features = list(samples[0].features.ranks.columns)
    rows = np.concatenate([case_row(sample.features, features) for sample in samples])
    verdicts = [sample.label.verdict for sample in samples]
    verdict = _trees(TREES["verdict"]).fit(rows, verdicts)
    faulty = [(i, s) for i, s in enumerate(samples) if s.label.verdict == "faulty"]
    blamed = [(index, fault.cause) for index, s in faulty for fault in s.label.faults]
    shared = Counter(index for index, _ in blamed)  # two faults count half each
    indices = [index for index, _ in blamed]
    weights = [1 / shared[index] for index in indices]
    causes = [cause for _, cause in blamed]
    return Forest(
        suite=suite.info.digest,
        suite_name=suite.info.name,
        cases=len(samples),
        feature_version=FEATURE_VERSION,
        features=features,
        rank_features=rank_features,
        verdict=verdict,
        cause=_trees(TREES["cause"]).fit(rows[indices], causes, sample_weight=weights),
        rank=_rank_trees(samples, rank_features),
        scopes=_scopes(sample.label for _, sample in faulty),
        usual=_usual(samples),
        candidates=_candidates(samples),
        calibration=[0.0, 1.0],
        threshold=0.0,
    )


def _trees(count: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(count, max_features=0.3, n_jobs=1, random_state=SEED)


def _rank_trees(samples: Sequence[Sample], names: list[str]) -> Any:
    """Learn which ranks are the place, from cases with one fault on some ranks only."""
    rows, place = [], []
    for sample in samples:
        faults, topology = sample.label.faults, sample.label.topology
        faulty = sample.label.verdict == "faulty" and len(faults) == 1
        ranks = ranks_of(faults[0].locus, topology) if faulty else set()
        if 0 < len(ranks) < len(topology.ranks):
            others = [entry.rank for entry in topology.ranks if entry.rank not in ranks]
            others = others[:: max(1, len(others) // OTHER_RANKS)]
            chosen = [*sorted(ranks)[:OTHER_RANKS], *others]
            rows.append(rank_rows(sample.features, names)[chosen])
            place += [rank in ranks for rank in chosen]
    return (
        _trees(TREES["rank"])
        .set_params(min_samples_leaf=2, max_features=0.2)
        .fit(np.concatenate(rows), place)
    )


def _scopes(labels: Iterable[Label]) -> dict[str, str]:
    counts = Counter((f.cause, f.locus.scope) for label in labels for f in label.faults)
    commonest = sorted(counts, key=lambda key: (counts[key], key))
    return {cause: str(scope) for cause, scope in commonest}


def _usual(samples: Sequence[Sample]) -> dict[str, list[str]]:
    usual = {}
    for kind in sorted({sample.kind for sample in samples}):
        own = [s for s in samples if s.kind == kind and s.label.verdict != "undecidable"]
        counts = Counter(signal for sample in own for signal in sample.signals)
        usual[kind] = sorted(s for s, count in counts.items() if count >= USUAL * len(own))
    return usual


def _candidates(samples: Sequence[Sample]) -> dict[str, list[str]]:
    counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for sample in samples:
        if sample.label.verdict == "undecidable":
            tables = sorted({name.split(".")[0] for name in sample.label.missing_signals})
            counts[",".join(tables), sample.label.candidates] += 1
    commonest = sorted(counts, key=lambda key: (counts[key], key))
    return {tables: list(causes) for tables, causes in commonest}


def out_of_fold(samples: Sequence[Sample], suite: Suite, say: Say) -> tuple[Floats, list[bool]]:
    """Answer each sample by a forest that was grown without its group.

    Returns:
        The share of trees for the cause that was blamed, and whether the answer was right in
        cause and place; one of each for every sample that was blamed.
    """
    groups = sorted({sample.label.group for sample in samples})
    shares, right = [], []
    for fold in range(FOLDS):
        say(f"calibrating {fold + 1} of {FOLDS}")
        left_out = set(groups[fold::FOLDS])
        forest = grow([s for s in samples if s.label.group not in left_out], suite)
        others = [s for s in samples if s.label.group in left_out]
        for sample, diagnosis in zip(others, answers(others, forest), strict=True):
            if diagnosis.verdict == "faulty":
                shares.append(diagnosis.confidence)
                right.append(is_right(sample, diagnosis))
    return np.array(shares), right


def answers(samples: Sequence[Sample], forest: Forest) -> list[Diagnosis]:
    """What the forest says of many cases, worked out together."""
    if not samples:
        return []
    rows = np.concatenate([case_row(sample.features, forest.features) for sample in samples])
    verdicts, causes = forest.verdict.predict_proba(rows), forest.cause.predict_proba(rows)
    return [
        decide(
            sample.case,
            sample.features,
            forest,
            verdicts[i],
            causes[i],
            partial(lacking, sample.signals, forest.usual.get(sample.kind, ())),
        )
        for i, sample in enumerate(samples)
    ]


def is_right(sample: Sample, diagnosis: Diagnosis) -> bool:
    """Whether the first finding names a fault's cause and place."""
    judgement = judge(list(diagnosis.findings[:1]), sample.label, Taxonomy.load())
    return "found" in judgement.buckets


def calibration(shares: Floats, right: Sequence[bool]) -> list[float]:
    """Fit P(right) to the logit of the share of trees; the identity where all or none is right."""
    from sklearn.linear_model import LogisticRegression

    if len(set(right)) < 2:
        return [0.0, 1.0]
    clipped = np.clip(shares, 1e-3, 1 - 1e-3)
    logits = [[math.log(share / (1 - share))] for share in clipped.tolist()]
    fitted = LogisticRegression(C=100.0).fit(logits, list(right))
    return [float(fitted.intercept_[0]), float(fitted.coef_[0, 0])]


def best_threshold(forest: Forest, dev: Sequence[Sample]) -> float:
    """The threshold with the greatest net benefit on `dev`: right less wrong findings."""
    said = zip(dev, answers(dev, forest), strict=True)
    blamed = [(d.confidence, is_right(s, d)) for s, d in said if d.verdict == "faulty"]

    def worth(threshold: float) -> tuple[int, float]:
        kept = [right for confidence, right in blamed if confidence >= threshold]
        return 2 * sum(kept) - len(kept), -threshold

    return max(THRESHOLDS, key=worth)
