"""A forest of decision trees over documented numbers of a case, trained on a suite's train split.

Three forests: one says faulty, healthy or undecidable, one the cause of what is faulty, one how
likely each rank is the place. What is less likely right than the threshold is not said.
See docs/forest.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TypedDict, cast

import numpy as np

from cases.case import Case
from cases.schema import Diagnosis, Finding, Scope
from harness.diagnosers.features import Features, extract
from harness.diagnosers.features.arrays import Floats
from harness.diagnosers.forest.columns import case_row, rank_rows
from harness.diagnosers.forest.model import SHIPPED, Forest, load
from harness.diagnosers.features.places import locate
from harness.diagnosers.forest.withheld import likely_candidates, withheld

NEEDS = {"kinds": ["training", "inference"]}
CANDIDATES = 3


class Settings(TypedDict):
    """Where the trained forest is."""

    model: str


def diagnose(case: Case, settings: Settings | None = None) -> Diagnosis:
    """Answer by the shipped forest, or by the one that the settings name."""
    forest = trained(settings["model"] if settings else str(SHIPPED))
    return answer(case, extract(case), forest)


@lru_cache(maxsize=1)
def trained(path: str) -> Forest:
    """Read a forest once a process."""
    return load(Path(path))


def answer(case: Case, features: Features, forest: Forest) -> Diagnosis:
    """Say what the forest says of a case whose features are known."""
    row = case_row(features, forest.features)
    verdicts, causes = forest.verdict.predict_proba(row), forest.cause.predict_proba(row)
    missing = partial(withheld, case, forest.usual)
    return decide(case, features, forest, verdicts[0], causes[0], missing)


def decide(
    case: Case,
    features: Features,
    forest: Forest,
    verdicts: Floats,
    causes: Floats,
    missing: Callable[[], Sequence[str]],
) -> Diagnosis:
    """Turn the shares of trees for each verdict and each cause into an answer.

    Args:
        missing: Says what the case lacks; asked only where the forest abstains.
    """
    verdict = str(forest.verdict.classes_[int(np.argmax(verdicts))])
    if verdict == "healthy":
        return Diagnosis(verdict="healthy", confidence=float(verdicts.max()))
    if verdict == "undecidable":
        lacking = tuple(missing())
        named = tuple(likely_candidates(lacking, forest.candidates))
        sure = float(verdicts.max())
        return Diagnosis(
            verdict="abstain", confidence=sure, missing_signals=lacking, candidates=named
        )
    order = np.argsort(-causes, kind="stable")
    names = tuple(str(forest.cause.classes_[index]) for index in order[:CANDIDATES])
    sure = calibrated(float(causes[order[0]]), forest.calibration)
    if sure < forest.threshold:
        return Diagnosis(
            verdict="abstain",
            confidence=1 - sure,
            missing_signals=tuple(missing()),
            candidates=names,
        )
    finding = _finding(case, features, forest, names[0], sure)
    return Diagnosis(verdict="faulty", findings=(finding,), confidence=sure)


def calibrated(share: float, calibration: list[float]) -> float:
    """The probability that an answer with this share of the trees is right."""
    share = min(max(share, 1e-3), 1 - 1e-3)
    a, b = calibration
    return float(1 / (1 + np.exp(-(a + b * np.log(share / (1 - share))))))


def _finding(
    case: Case, features: Features, forest: Forest, cause: str, confidence: float
) -> Finding:
    likely = forest.rank.predict_proba(rank_rows(features, forest.rank_features))[:, 1]
    slowdown = features.values["slowdown"]
    lost = 1 - 1 / slowdown if slowdown > 1 else None
    return Finding(
        cause=cause,
        locus=locate(case, cast(Scope, forest.scopes[cause]), likely),
        confidence=confidence,
        lost_fraction=lost,
    )
