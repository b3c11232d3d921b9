"""A forest of decision trees over documented numbers of a case, trained on a suite's train split.

One forest says faulty, healthy or undecidable, one the cause of what is faulty, one how likely
each rank is the place. The first line of `rules` that holds has a vote beside the trees; others
that hold are weighed as second faults. What is less likely right than the threshold is not said.
See docs/forest.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypedDict, cast

import numpy as np

from cases.case import Case
from cases.schema import Diagnosis, Finding, Locus, Scope
from harness.diagnosers.features.arrays import Floats
from harness.diagnosers.features.places import locate
from harness.diagnosers.forest.columns import by_class, case_row, rank_rows
from harness.diagnosers.forest.model import Forest, load
from harness.diagnosers.forest.observe import OF_VERDICT, Observed, observe
from harness.diagnosers.forest.second import WORTH_SAYING, others, rows
from harness.diagnosers.rules.place import place

NEEDS = {"kinds": ["training", "inference"]}
CANDIDATES = 3


class Settings(TypedDict):
    """Where the trained forest is."""

    model: str


def diagnose(case: Case, settings: Settings) -> Diagnosis:
    """Answer by the forest that the settings name; `shipped.diagnose` has its own."""
    return answer(observe(case), trained(settings["model"]))


def prepare(settings: Settings) -> None:
    """Read the forest before the first case comes."""
    trained(settings["model"])


@lru_cache(maxsize=1)
def trained(path: str) -> Forest:
    """Read a forest once a process."""
    return load(Path(path))


def answer(seen: Observed, forest: Forest) -> Diagnosis:
    """Say what the forest says of a case that has been observed."""
    verdicts = forest.verdict.predict_proba(case_row(seen, OF_VERDICT))[0]
    causes = forest.cause.predict_proba(case_row(seen, forest.features))[0]
    return decide(seen, forest, verdicts, causes)


def decide(seen: Observed, forest: Forest, verdicts: Floats, causes: Floats) -> Diagnosis:
    """Turn the shares of trees for each verdict and each cause into an answer."""
    verdict = str(forest.verdict.classes_[int(np.argmax(verdicts))])
    sure = float(verdicts.max())
    if verdict == "healthy":
        return Diagnosis(verdict="healthy", confidence=sure)
    if verdict == "undecidable":
        named = likely_candidates(seen.missing, forest.candidates)
        return Diagnosis(
            verdict="abstain", confidence=sure, missing_signals=seen.missing, candidates=named
        )
    shares = votes(seen, forest, causes)
    names = sorted(shares, key=lambda name: (-shares[name], name))[:CANDIDATES]
    sure = calibrated(shares[names[0]], forest.calibration)
    if sure < forest.threshold:
        return Diagnosis(
            verdict="abstain",
            confidence=1 - sure,
            missing_signals=seen.missing,
            candidates=tuple(names),
        )
    blamed = [(names[0], sure), *second_faults(seen, forest, names[0], causes)]
    findings = tuple(_finding(seen, forest, name, p, len(blamed)) for name, p in blamed)
    return Diagnosis(verdict="faulty", findings=findings, confidence=sure)


def votes(seen: Observed, forest: Forest, causes: Floats) -> dict[str, float]:
    """Shares of causes: the trees', and beside them the first rule that holds."""
    trust = forest.trust if seen.rules else 0.0
    shares = {name: (1 - trust) * s for name, s in by_class(forest.cause, causes).items()}
    for rule in seen.rules[:1]:
        shares[rule.cause] = shares.get(rule.cause, 0.0) + trust
    return shares


def second_faults(
    seen: Observed, forest: Forest, first: str, causes: Floats
) -> list[tuple[str, float]]:
    """Causes of other rules that hold and are likely faults beside the first, and how likely."""
    found = others(seen, first)
    if not found or forest.second is None or seen.values["on_gpu"] not in forest.on_gpu:
        return []
    weighed = rows(found, by_class(forest.cause, causes), first, forest.alone, forest.echoes)
    likely = forest.second.predict_proba(weighed)[:, 1].tolist()
    named = [(rule.cause, p) for (_, rule), p in zip(found, likely, strict=True)]
    return sorted((one for one in named if one[1] >= WORTH_SAYING), key=lambda one: -one[1])


def calibrated(share: float, calibration: Sequence[float]) -> float:
    """The probability that an answer with this share of votes is right."""
    share = min(max(share, 1e-3), 1 - 1e-3)
    a, b = calibration
    return float(1 / (1 + np.exp(-(a + b * np.log(share / (1 - share))))))


def _finding(seen: Observed, forest: Forest, cause: str, confidence: float, of: int) -> Finding:
    """Name one of so many causes, which share the lost time alike."""
    slowdown = seen.values["slowdown"]
    lost = (1 - 1 / slowdown) / of if slowdown > 1 else None
    locus = _place(seen, forest, cause)
    return Finding(cause=cause, locus=locus, confidence=confidence, lost_fraction=lost)


def _place(seen: Observed, forest: Forest, cause: str) -> Locus:
    """Where the cause's rule says; where none holds, the ranks that the trees point at."""
    own = [rule for rule in seen.rules if rule.cause == cause]
    if own:
        return place(seen.facts, own[0])
    likely = forest.rank.predict_proba(rank_rows(seen, forest.rank_features))[:, 1]
    return locate(seen.facts.case, cast(Scope, forest.scopes.get(cause, "job")), likely)


def likely_candidates(
    missing: Sequence[str], known: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Candidates of the undecidable cases that lack most nearly the same tables."""
    tables = {signal.split(".")[0] for signal in missing}

    def alike(key: str) -> float:
        other = set(key.split(","))
        return len(tables & other) / max(len(tables | other), 1)

    return tuple(known[max(known, key=alike)]) if known else ()
