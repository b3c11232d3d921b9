"""What a built suite consists of: counts for its description in the documentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from cases.bundle import Suite
from cases.documents import read_record
from cases.taxonomy import Taxonomy
from cases.truth import Truth
from injectors.build import Places
from injectors.finish import REFUSED
from injectors.matrix import finished

Counts = dict[str, dict[str, int]]


def counts(target: Places) -> Counts:
    """Count the cases of a built suite by everything that a reader may ask for.

    Args:
        target: Its folders.

    Returns:
        By what is counted (`verdict`, `domain`, `workload`, ...): value -> cases. `refused` counts
        cases that were planned and could not be shown, by what was missing.
    """
    suite, taxonomy = Suite.open(target.cases), Taxonomy.load()
    truths = {case: read_record(target.labels / f"{case}.json", Truth) for case in suite.case_ids}
    infos = [suite.case(case).info for case in suite.case_ids]
    faulty = [truth for truth in truths.values() if truth.verdict == "faulty"]
    causes = [fault.cause for truth in faulty for fault in truth.faults]
    return {
        "verdict": _count(_kind(truth) for truth in truths.values()),
        "faults": _count(str(len(truth.faults)) for truth in faulty),
        "cause": _count(causes),
        "domain": _count(taxonomy.domain(cause) for cause in causes),
        "decoy": _count(decoy.name for truth in truths.values() for decoy in truth.decoys),
        "withheld": _count(_withheld(truth) for truth in truths.values()),
        "split": _count(truth.split for truth in truths.values()),
        "workload": _count(info.workload.name for info in infos),
        "kind": _count(info.kind for info in infos),
        "question": _count(info.question for info in infos),
        "shape": _count(info.shape for info in infos),
        "ranks": _count(str(len(info.topology.ranks)) for info in infos),
        "refused": _refused(target),
        "groups": {"all": len({truth.group for truth in truths.values()})},
    }


def _count(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _kind(truth: Truth) -> str:
    if truth.verdict == "healthy" and truth.decoys:
        return "healthy with decoy"
    return truth.verdict


def _withheld(truth: Truth) -> str:
    """What was withheld, and whether the case is undecidable for it."""
    plan = truth.recipe.get("case", {})
    what = plan.get("withhold", "nothing") if isinstance(plan, Mapping) else "nothing"
    return f"{what}, {truth.verdict}" if what != "nothing" else what


def _refused(target: Places) -> dict[str, int]:
    """Count refusals by their reason, numbers and names left out."""
    journal = target.labels.parent / f"{target.labels.name}.journal.jsonl"
    reasons = [reason for line in finished(journal).values() for reason in line.refused.values()]
    reasons += [path.read_text() for path in _notes(target.labels / REFUSED)]
    return _count(reason.split(":")[0].split(",")[0].split(" is ")[0] for reason in reasons)


def _notes(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.txt")) if folder.is_dir() else []
