"""What must hold of a suite before its scores mean anything, checked from its files alone.

Labels are not believed: each is decided again from its raw samples, and each witness is run
on its own case, on its twin and on every case of a cause or decoy that it might be confused with.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cases.bundle import Suite
from cases.case import Case
from cases.errors import InputError
from cases.taxonomy import Taxonomy
from harness.check_cases import check_case, shipped_problems, witness_problems
from harness.check_labels import check_label
from harness.checklist import Check, Checklist
from harness.each_case import each
from harness.judge import Truth, labelled_digest, load_truths
from injectors.rivals import rivals


def check_suite(folder: Path, taxonomy: Taxonomy, labels: Path | None = None) -> list[Check]:
    """Check a whole suite; unreadable labels raise, everything else is noted."""
    suite, checklist = Suite.open(folder), Checklist()
    truths = load_truths(folder, labels)
    digest = labelled_digest(suite, taxonomy.digest, labels)
    checklist.add("suite_digest", suite.info.name, _suite_problems(suite, digest))
    for truth in truths.values():
        check_label(checklist, truth, truths, taxonomy)
    for group, members in _grouped(truths).items():
        splits = sorted({truth.split for truth in members})
        checklist.add("split", group, [f"lies in {splits}"] if len(splits) > 1 else [])
    queries = witness_queries(truths, taxonomy)
    looks = [_Look(folder, truth, tuple(queries[case_id])) for case_id, truth in truths.items()]
    for part in each(_Look.__call__, looks):
        checklist.extend(part)
    return checklist.checks


@dataclass(frozen=True)
class Question:
    """A witness to be run on a case, of which case it is, and whether the label promises it."""

    owner: str
    sql: str
    promised: bool


@dataclass(frozen=True)
class _Look:
    """All that is to be checked of one case's signals; it can be sent to another process."""

    folder: Path
    truth: Truth
    questions: tuple[Question, ...]

    def __call__(self) -> Checklist:
        suite, checklist, case_id = Suite.open(self.folder), Checklist(), self.truth.id
        try:
            suite.verify_case(case_id)
            case = suite.case(case_id)
        except InputError as error:
            checklist.add("digest", case_id, [str(error)])
            return checklist
        checklist.add("digest", case_id, [])
        check_case(checklist, case, self.truth)
        twin = _sound_case(suite, self.truth.twin)
        checklist.add("shipped", case_id, shipped_problems(case, twin, self.truth))
        for asked in self.questions:
            own = asked.owner == case_id
            name, where = "witness", case_id
            if not own:
                name, where = "witness_false", f"{asked.owner} on {case_id}"
            checklist.add(name, where, witness_problems(case, asked.sql, own, asked.promised))
        return checklist


def composition(truths: dict[str, Truth]) -> dict[str, dict[str, int]]:
    """Count cases by verdict (decoys apart), cause, split and group size."""
    kinds = [
        "healthy with decoy" if t.verdict == "healthy" and t.decoys else t.verdict
        for t in truths.values()
    ]
    faulty = [truth for truth in truths.values() if truth.verdict == "faulty"]
    causes = [fault.cause for truth in faulty for fault in truth.faults]
    return {
        "verdict": dict(sorted(Counter(kinds).items())),
        "cause": dict(sorted(Counter(causes).items())),
        "split": dict(sorted(Counter(truth.split for truth in truths.values()).items())),
        "groups": {"all": len(_grouped(truths))},
    }


def witness_queries(truths: dict[str, Truth], taxonomy: Taxonomy) -> dict[str, list[Question]]:
    """Case id -> every witness that is to be run on that case.

    A witness is run on its own case, on those in its `false_on`, and on every rival case.
    """
    queries: dict[str, list[Question]] = defaultdict(list)
    for owner, truth in truths.items():
        if truth.witness is None:
            continue
        promised = {owner, *truth.witness.false_on}
        others = promised.union(rivals(truth, truths, taxonomy)) - {owner}
        for target in (owner, *sorted(others)):
            queries[target].append(Question(owner, truth.witness.sql, target in promised))
    return queries


def _sound_case(suite: Suite, case_id: str | None) -> Case | None:
    """Open a case, None where there is none or it is damaged, which its own check tells."""
    try:
        return suite.case(case_id) if case_id in suite.info.cases else None
    except InputError:
        return None


def _suite_problems(suite: Suite, digest: str) -> Iterator[str]:
    unlisted = suite.unlisted
    if unlisted:
        yield f"suite.json does not list {unlisted}"
    if digest != suite.info.digest:
        yield f"suite.json states {suite.info.digest}, cases, labels and taxonomy give {digest}"


def _grouped(truths: dict[str, Truth]) -> dict[str, list[Truth]]:
    groups: dict[str, list[Truth]] = defaultdict(list)
    for truth in truths.values():
        groups[truth.group].append(truth)
    return groups
