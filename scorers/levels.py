"""How far an answer is right: domain, mechanism, cause, cause and locus."""

from __future__ import annotations

from collections.abc import Sequence

from cases.schema import Fault, Finding
from scorers.lineage import Lineage
from scorers.settling import Judgement, Status

LEVELS = ("domain", "mechanism", "cause", "cause_and_locus")
RIGHT = tuple(f"right_{level}" for level in LEVELS)

# True, False, or None where a finding says nothing, at each of LEVELS.
Flags = tuple[bool | None, ...]
NOWHERE: Flags = (None,) * len(LEVELS)
WRONG: Flags = (False,) * len(LEVELS)
PLACED: dict[Status, bool | None] = {"true": True, "false": False, "coarse": None}


def levels(
    findings: Sequence[Finding], faults: Sequence[Fault], judgement: Judgement, tree: Lineage
) -> tuple[list[Flags], list[Flags]]:
    """Say at which LEVELS each finding is right, and each fault is named.

    Neutral findings count nowhere; a right finding that is coarse does not count below its
    level; a false symptom is false at all. A fault is named at a level if a root finding is right
    for it there, the place ignored but at the last one, which is `found`; what is right for one
    member of a redundancy group is right for all.

    Args:
        findings: What was said.
        faults: What is true, none unless the case is faulty.
        judgement: Of the findings.
        tree: The tree of causes.
    """
    if not faults:
        return [WRONG] * len(findings), []
    shared = [[tree.shared(finding.cause, fault) for fault in faults] for finding in findings]
    said = [
        NOWHERE
        if status == "neutral"
        else WRONG
        if finding.role == "symptom"
        else (*_best(own), PLACED[status])
        for finding, status, own in zip(findings, judgement.statuses, shared, strict=True)
    ]
    roots = [own for finding, own in zip(findings, shared, strict=True) if finding.role == "root"]
    named = [
        _named([own[j] for own in roots], bucket == "found")
        for j, bucket in enumerate(judgement.buckets)
    ]
    return said, named if len(faults) == 1 else _shared_in_groups(named, faults)


def _best(flags: Sequence[Flags]) -> Flags:
    """Return what is right for any fault, else what is right as far as it goes."""
    if len(flags) == 1:
        return flags[0]
    return tuple(
        True if True in level else None if None in level else False
        for level in zip(*flags, strict=True)
    )


def _named(flags: Sequence[Flags], found: bool) -> Flags:
    if not flags:
        return WRONG
    return (*(True in level for level in zip(*flags, strict=True)), found)


def _shared_in_groups(named: list[Flags], faults: Sequence[Fault]) -> list[Flags]:
    """Give each member of a redundancy group what is right for any of them."""
    groups: dict[str, list[Flags]] = {}
    for fault, flags in zip(faults, named, strict=True):
        if fault.redundancy_group is not None:
            groups.setdefault(fault.redundancy_group, []).append(flags)
    joint = {group: _best(flags) for group, flags in groups.items()}
    return [
        flags if fault.redundancy_group is None else joint[fault.redundancy_group]
        for fault, flags in zip(faults, named, strict=True)
    ]
