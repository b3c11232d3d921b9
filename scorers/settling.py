"""What each finding of an answer is, and which bucket each fault is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from cases.schema import Fault, Finding
from scorers.inputs import Label, Tree
from scorers.lineage import Lineage
from scorers.matching import Pair, Pairs, assign, pair_up

Status = Literal["true", "coarse", "neutral", "false"]
FAULT_BUCKETS = (
    "failed",
    "unsupported",
    "abstained",
    "found",
    "found_coarse",
    "unlocated",
    "mislocated",
    "misattributed",
    "missed",
)
# What a finding that names its cause can do for a fault, the best first.
HELD = ("found", "found_coarse", "unlocated", "mislocated")


@dataclass
class Judgement:
    """The findings' statuses and kinds, and the faults' buckets, in the order given.

    `kinds` says of a false finding how it misleads (mislocated, or one of `judging.KINDS`).
    `blamed` holds, for each fault, the finding that decided its bucket, `credits` the root
    findings that are a right answer to it. `related` are the root findings that name any fault's
    cause or what stands above it: what the others say changes nothing about these.
    """

    statuses: list[Status]
    kinds: list[str | None]
    buckets: list[str]
    blamed: list[int | None]
    credits: list[set[int]] = field(default_factory=list)
    related: frozenset[int] = frozenset()

    @property
    def misled(self) -> bool:
        """Whether at least one finding is false."""
        return "false" in self.statuses


def settle(findings: Sequence[Finding], label: Label, taxonomy: Tree) -> Judgement:
    """Judge the findings of one answer to a case; how false ones mislead is left open.

    On a healthy or undecidable case every finding is false. On a faulty one each fault gets
    the first bucket of FAULT_BUCKETS from `found` on that applies, but `missed` stands for
    `misattributed` as well: `scorers.judging.judge` tells the two apart.
    """
    if label.verdict != "faulty":
        return Judgement(["false"] * len(findings), [None] * len(findings), [], [])
    faults, tree = label.faults, Lineage.of(taxonomy)
    pairs = pair_up(findings, faults, label.topology, tree)
    chosen = assign(findings, faults, pairs)
    related = frozenset([i for i, _ in pairs])
    statuses: list[Status] = [
        _root_status(i, findings, faults, pairs, chosen)
        if i in related
        else "false"
        if finding.role == "root"
        else _symptom_status(finding, faults, tree)
        for i, finding in enumerate(findings)
    ]
    result = Judgement(statuses, [None] * len(findings), [], [], [], related)
    for j, fault in enumerate(faults):
        own = {
            i: pair
            for (i, k), pair in pairs.items()
            if k == j and chosen.get(findings[i].cause, fault.cause) == fault.cause
        }
        _settle_one(result, own, findings)
    if len(faults) > 1:
        _share_redundancy(result, faults)
    return result


def _settle_one(result: Judgement, own: dict[int, Pair], findings: Sequence[Finding]) -> None:
    """Add one fault, given the findings that name it."""
    bucket, blamed = _bucket(own, result.statuses, findings) if own else ("missed", None)
    result.buckets.append(bucket)
    result.blamed.append(blamed)
    result.credits.append(
        {i for i, pair in own.items() if pair.relation == "cause" and pair.placing == "right"}
    )


def _symptom_status(finding: Finding, faults: Sequence[Fault], tree: Lineage) -> Status:
    """A declared symptom is neutral if a fault has it and its declared root covers that fault."""
    root = finding.caused_by or ""
    declared = any(
        finding.cause in fault.symptoms and root in tree.relations(fault) for fault in faults
    )
    return "neutral" if declared else "false"


def _root_status(
    i: int,
    findings: Sequence[Finding],
    faults: Sequence[Fault],
    pairs: Pairs,
    chosen: dict[str, str],
) -> Status:
    """Judge a root by the faults of the cause that it is assigned to, else as a surplus."""
    target = chosen.get(findings[i].cause)
    standing = [
        pair
        for (k, j), pair in pairs.items()
        if k == i and pair.placing != "wrong" and target in (None, faults[j].cause)
    ]
    if not standing:
        return "false"
    if not any(pair.relation == "cause" for pair in standing):
        return "coarse"
    if target is None:
        return "neutral"
    right = any(pair.relation == "cause" and pair.located for pair in standing)
    return "true" if right else "coarse"


def _bucket(
    own: dict[int, Pair], statuses: Sequence[Status], findings: Sequence[Finding]
) -> tuple[str, int | None]:
    """Return a fault's bucket and the finding that decides it, the most confident if several."""
    # A finding that is right for another fault of the same cause is not a wrong place.
    held = {i: _held(pair, statuses[i]) for i, pair in own.items()}
    best = min(held.values())
    if best == len(HELD):
        return "missed", None
    deciding = [i for i, place in held.items() if place == best]
    first = deciding[0]
    if len(deciding) > 1:
        first = min(deciding, key=lambda i: canonical(findings[i]))
    return HELD[best], first


def _held(pair: Pair, status: Status) -> int:
    """Return which bucket of HELD a finding would put a fault in, beyond the last if none."""
    if pair.placing == "right":
        return 0 if pair.relation == "cause" else 1
    if pair.placing == "none":
        return 2
    return 3 if status == "false" else 4


def canonical(finding: Finding) -> tuple[object, ...]:
    """Return what sorts findings whatever their order: surest first, then cause, then place."""
    where = finding.locus
    if where is None:
        return -finding.confidence, finding.cause, ""
    places = (where.ranks, where.hosts, where.stages, where.gpus, where.links, where.ops)
    rest = (where.workers, where.request_classes, tuple(sorted(where.segment.items())))
    return -finding.confidence, finding.cause, where.scope, *places, *rest


def _share_redundancy(result: Judgement, faults: Sequence[Fault]) -> None:
    """Give every member of a redundancy group the best right answer that one of them has."""
    rank = FAULT_BUCKETS.index
    for group in sorted({f.redundancy_group for f in faults if f.redundancy_group is not None}):
        members = [j for j, fault in enumerate(faults) if fault.redundancy_group == group]
        best = min(members, key=lambda j: rank(result.buckets[j]))
        bucket, blamed = result.buckets[best], result.blamed[best]
        right: set[int] = set().union(*(result.credits[j] for j in members))
        for j in members:
            result.credits[j] = right
            if bucket in ("found", "found_coarse") and rank(bucket) < rank(result.buckets[j]):
                result.buckets[j], result.blamed[j] = bucket, blamed
