"""Growing a forest from samples: its classifiers, their calibration, and the threshold."""

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
from harness.diagnosers.forest import decide
from harness.diagnosers.forest.columns import case_row, rank_rows
from harness.diagnosers.forest.model import Forest
from harness.diagnosers.forest.observe import OF_VERDICT
from harness.training.causes import SEED, cause_trees, extra_trees
from harness.training.samples import Sample, ranks_of
from harness.training.second import count_echoes, grow_second
from scorers import Label
from scorers.judging import judge

TREES = {"verdict": 30, "rank": 40}
TRUSTS = tuple(round(0.1 * step, 1) for step in range(10))
AS_IS = (0.0, 1.0)
OTHER_RANKS = 24  # ranks of one case that are shown as not being the place
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 17))
Say = Callable[[str], None]


def fit(train: Sequence[Sample], dev: Sequence[Sample], suite: Suite, say: Say) -> Forest:
    """Grow a forest on `train`; choose trust, calibration and threshold on `dev`."""
    say(f"growing on {len(train)} cases")
    forest = grow(train, suite)
    say(f"calibrating on {len(dev)} cases")
    forest = max((replace(forest, trust=trust) for trust in TRUSTS), key=partial(found_in, dev))
    forest = replace(forest, calibration=calibration(blamed_in(dev, forest)))
    return replace(forest, threshold=best_threshold(blamed_in(dev, forest)))


def grow(samples: Sequence[Sample], suite: Suite) -> Forest:
    """Grow the classifiers; not calibrated, and without a threshold."""
    from sklearn.ensemble import RandomForestClassifier

    features = sorted({name for sample in samples for name in sample.seen.values})
    rank_features = list(samples[0].seen.ranks.columns)
    judged = np.concatenate([case_row(sample.seen, OF_VERDICT) for sample in samples])
    verdicts = [sample.label.verdict for sample in samples]
    verdict = RandomForestClassifier(TREES["verdict"], max_features=None, random_state=SEED)
    faulty = [sample for sample in samples if sample.label.verdict == "faulty"]
    alone, echoes = count_echoes(faulty)
    return Forest(
        suite=suite.info.digest,
        suite_name=suite.info.name,
        cases=len(samples),
        feature_version=FEATURE_VERSION,
        features=features,
        rank_features=rank_features,
        trust=0.0,
        verdict=verdict.fit(judged, verdicts),
        cause=cause_trees(faulty, features),
        rank=_rank_trees(samples, rank_features),
        alone=alone,
        echoes=echoes,
        second=grow_second(faulty, features),
        on_gpu=sorted({sample.seen.values["on_gpu"] for sample in faulty}),
        scopes=_scopes(sample.label for sample in faulty),
        candidates=_candidates(samples),
        calibration=list(AS_IS),
        threshold=0.0,
    )


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
            rows.append(rank_rows(sample.seen, names)[chosen])
            place += [rank in ranks for rank in chosen]
    trees = extra_trees(TREES["rank"], min_samples_leaf=2, max_features=0.2)
    return trees.fit(np.concatenate(rows), place)


def _scopes(labels: Iterable[Label]) -> dict[str, str]:
    counts = Counter((f.cause, f.locus.scope) for label in labels for f in label.faults)
    commonest = sorted(counts, key=lambda key: (counts[key], key))
    return {cause: str(scope) for cause, scope in commonest}


def _candidates(samples: Sequence[Sample]) -> dict[str, list[str]]:
    counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for sample in samples:
        if sample.label.verdict == "undecidable":
            tables = sorted({name.split(".")[0] for name in sample.label.missing_signals})
            counts[",".join(tables), sample.label.candidates] += 1
    commonest = sorted(counts, key=lambda key: (counts[key], key))
    return {tables: list(causes) for tables, causes in commonest}


def blamed_in(samples: Sequence[Sample], forest: Forest) -> list[tuple[float, bool]]:
    """Confidence of each finding, and whether it names a fault's cause and place."""
    said = zip(samples, answers(samples, forest), strict=True)
    return [(d.confidence, is_right(s, d)) for s, d in said if d.verdict == "faulty"]


def found_in(samples: Sequence[Sample], forest: Forest) -> tuple[int, float]:
    """How many findings are right; of equals the forest that trusts its trees more is better."""
    return sum(right for _, right in blamed_in(samples, forest)), -forest.trust


def answers(samples: Sequence[Sample], forest: Forest) -> list[Diagnosis]:
    """What the forest says of many cases, worked out together."""
    if not samples:
        return []
    judged = np.concatenate([case_row(sample.seen, OF_VERDICT) for sample in samples])
    rows = np.concatenate([case_row(sample.seen, forest.features) for sample in samples])
    verdicts, causes = forest.verdict.predict_proba(judged), forest.cause.predict_proba(rows)
    return [decide(sample.seen, forest, verdicts[i], causes[i]) for i, sample in enumerate(samples)]


def is_right(sample: Sample, diagnosis: Diagnosis) -> bool:
    """Whether the first finding names a fault's cause and place."""
    judgement = judge(list(diagnosis.findings[:1]), sample.label, Taxonomy.load())
    return "found" in judgement.buckets


def calibration(blamed: Sequence[tuple[float, bool]]) -> list[float]:
    """Fit P(right) to the logit of the share of votes; the identity if all or none is right."""
    from sklearn.linear_model import LogisticRegression

    right = [answer for _, answer in blamed]
    if len(set(right)) < 2:
        return list(AS_IS)
    clipped = [min(max(share, 1e-3), 1 - 1e-3) for share, _ in blamed]
    logits = [[math.log(share / (1 - share))] for share in clipped]
    fitted = LogisticRegression(C=1.0).fit(logits, right)
    slope = float(fitted.coef_[0, 0])
    if slope <= 0:  # too few are wrong to tell the sure from the unsure: all are as often right
        share = (sum(right) + 1) / (len(right) + 2)
        return [math.log(share / (1 - share)), 0.0]
    return [float(fitted.intercept_[0]), slope]


def best_threshold(blamed: Sequence[tuple[float, bool]]) -> float:
    """The threshold with the most right less wrong findings, the lowest of equals."""

    def worth(threshold: float) -> tuple[int, float]:
        kept = [right for confidence, right in blamed if confidence >= threshold]
        return 2 * sum(kept) - len(kept), -threshold

    return max(THRESHOLDS, key=worth)
