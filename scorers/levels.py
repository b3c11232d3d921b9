"""How far an answer is right: domain, mechanism, cause, cause and locus."""

from __future__ import annotations

from collections.abc import Sequence

from cases.schema import Fault, Finding
from scorers.inputs import Tree
from scorers.judging import Status, path

# Depth in the tree that a level compares; the last one compares the place as well.
DEPTHS = {"domain": 0, "mechanism": 1, "cause": 2}
LEVELS = (*DEPTHS, "cause_and_locus")


def credited(
    findings: Sequence[Finding],
    faults: Sequence[Fault],
    buckets: Sequence[str],
    taxonomy: Tree,
) -> dict[str, list[bool]]:
    """Say for each level which faults a root finding names, the place ignored but at the last.

    What is right for one member of a redundancy group is right for all.
    """
    roots = [path(f.cause, taxonomy) for f in findings if f.role == "root"]
    found = {
        level: [_shares(roots, fault, depth, taxonomy) for fault in faults]
        for level, depth in DEPTHS.items()
    }
    found["cause_and_locus"] = [bucket == "found" for bucket in buckets]
    for flags in found.values():
        named = {f.redundancy_group for f, flag in zip(faults, flags, strict=True) if flag}
        flags[:] = [
            flag or (fault.redundancy_group in named and fault.redundancy_group is not None)
            for fault, flag in zip(faults, flags, strict=True)
        ]
    return found


def finding_levels(
    finding: Finding, status: Status, faults: Sequence[Fault], taxonomy: Tree
) -> dict[str, bool | None]:
    """Say for each level whether a finding is right there; None where it does not count.

    Neutral findings count nowhere; a right finding that is coarse does not count below its
    level; a false symptom is false at all.
    """
    if status == "neutral":
        return {f"right_{level}": None for level in LEVELS}
    if finding.role == "symptom":
        return {f"right_{level}": False for level in LEVELS}
    right: dict[str, bool | None] = {}
    own = path(finding.cause, taxonomy)
    known = False
    for level, depth in DEPTHS.items():
        if depth < len(own):
            known = any(_shares([own], fault, depth, taxonomy) for fault in faults)
        right[f"right_{level}"] = known if depth < len(own) or not known else None
    right["right_cause_and_locus"] = {"true": True, "false": False}.get(status)
    return right


def _shares(roots: Sequence[tuple[str, ...]], fault: Fault, depth: int, taxonomy: Tree) -> bool:
    """Whether one of the blamed paths meets a right cause of the fault at a depth."""
    true = [path(cause, taxonomy) for cause in (fault.cause, *fault.acceptable)]
    return any(
        len(blamed) > depth and blamed[: depth + 1] == right[: depth + 1]
        for blamed in roots
        for right in true
    )
