"""What must hold of a suite before its scores mean anything, checked from its files alone.

Labels are not believed: each is decided again from its raw samples, and each witness is run
on its own case, on its twin and on every case of a cause or decoy that it might be confused with.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from cases.bundle import Suite
from cases.case import Case
from cases.errors import InputError
from cases.taxonomy import Taxonomy
from harness.check_cases import check_case, shipped_problems, witness_problems
from harness.check_labels import check_label
from harness.checklist import Check, Checklist
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
    for case_id, truth in truths.items():
        try:
            suite.verify_case(case_id)
            case = suite.case(case_id)
        except InputError as error:
            checklist.add("digest", case_id, [str(error)])
            continue
        checklist.add("digest", case_id, [])
        check_case(checklist, case, truth)
        twin = _sound_case(suite, truth.twin)
        checklist.add("shipped", case_id, shipped_problems(case, twin, truth))
        for owner, sql in queries[case_id]:
            name = "witness" if owner == case_id else "witness_false"
            where = case_id if owner == case_id else f"{owner} on {case_id}"
            witness = truths[owner].witness
            promised = witness is not None and case_id in (owner, *witness.false_on)
            problems = witness_problems(case, sql, owner == case_id, promised)
            checklist.add(name, where, problems)
    return checklist.checks


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


def witness_queries(
    truths: dict[str, Truth], taxonomy: Taxonomy
) -> dict[str, list[tuple[str, str]]]:
    """Case id -> (owner, query) of every witness that is to be run on that case.

    A witness is run on its own case, on those in its `false_on`, and on every rival case.
    """
    queries: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for owner, truth in truths.items():
        if truth.witness:
            others = {*truth.witness.false_on, *rivals(truth, truths, taxonomy)}
            for target in (owner, *sorted(others)):
                queries[target].append((owner, truth.witness.sql))
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
