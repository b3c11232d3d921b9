"""How far an answer is right: domain, mechanism, cause, cause and locus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cases.schema import Fault, Finding
from scorers.lineage import Lineage
from scorers.settling import Status

# Depth in the tree that a level compares; the last one compares the place as well.
DEPTHS = {"domain": 0, "mechanism": 1, "cause": 2}
LEVELS = (*DEPTHS, "cause_and_locus")
RIGHT = tuple(f"right_{level}" for level in LEVELS)

Flags = tuple[bool | None, ...]
NOWHERE: Flags = (None,) * len(LEVELS)
WRONG: Flags = (False,) * len(LEVELS)


def credited(
    findings: Sequence[Finding],
    faults: Sequence[Fault],
    buckets: Sequence[str],
    tree: Lineage,
) -> list[Flags]:
    """Say for each fault at which LEVELS a root finding names it; the last one is `found`.

    What is right for one member of a redundancy group is right for all.
    """
    if not faults:
        return []
    roots = [tree.path(finding.cause) for finding in findings if finding.role == "root"]
    # What a root names at each depth.
    said = [{path[depth] for path in roots if len(path) > depth} for depth in DEPTHS.values()]
    named: list[Flags] = []
    for fault, bucket in zip(faults, buckets, strict=True):
        right = tree.relations(fault).keys()
        named.append((*(not names.isdisjoint(right) for names in said), bucket == "found"))
    return _shared(named, faults)


def _shared(named: list[Flags], faults: Sequence[Fault]) -> list[Flags]:
    """Give each member of a redundancy group what is right for any of them."""
    groups: dict[str, list[Flags]] = {}
    if all(fault.redundancy_group is None for fault in faults):
        return named
    for fault, flags in zip(faults, named, strict=True):
        if fault.redundancy_group is not None:
            groups.setdefault(fault.redundancy_group, []).append(flags)
    joint = {
        group: tuple(any(level) for level in zip(*flags, strict=True))
        for group, flags in groups.items()
    }
    return [
        flags if fault.redundancy_group is None else joint[fault.redundancy_group]
        for fault, flags in zip(faults, named, strict=True)
    ]


def finding_levels(
    findings: Sequence[Finding],
    statuses: Sequence[Status],
    right: Sequence[Mapping[str, object]],
    tree: Lineage,
) -> list[Flags]:
    """Say for each finding at which LEVELS it is right; None where it does not count.

    Neutral findings count nowhere; a right finding that is coarse does not count below its
    level; a false symptom is false at all.

    Args:
        findings: The findings.
        statuses: What each was judged to be.
        right: For each fault the names that are right for it.
        tree: The tree of causes.
    """
    if not right:
        return [WRONG] * len(findings)
    return [
        NOWHERE
        if status == "neutral"
        else WRONG
        if finding.role == "symptom"
        else _root_levels(tree.path(finding.cause), status, right)
        for finding, status in zip(findings, statuses, strict=True)
    ]


def _root_levels(
    path: tuple[str, ...], status: Status, right: Sequence[Mapping[str, object]]
) -> Flags:
    flags: list[bool | None] = [_in_any(name, right) for name in path]
    # Below its own level what is right says nothing, and what is wrong stays wrong.
    flags += [None if flags[-1] else False] * (len(DEPTHS) - len(path))
    flags.append(True if status == "true" else False if status == "false" else None)
    return tuple(flags)


def _in_any(name: str, right: Sequence[Mapping[str, object]]) -> bool:
    return any(name in names for names in right) if len(right) > 1 else name in right[0]
