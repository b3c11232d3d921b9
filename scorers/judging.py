"""One answer against one label: what each finding is, and which bucket each fault is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from cases.schema import Fault, Finding
from scorers.inputs import Label, Tree
from scorers.locus import named
from scorers.matching import Pair, Pairs, assign, pair_up, relation

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
KINDS = ("symptom", "victim", "decoy", "same_mechanism", "same_domain", "other")


@dataclass
class Judgement:
    """The findings' statuses and kinds, and the faults' buckets, in the order given.

    `kinds` says of a false finding how it misleads (mislocated, or one of KINDS). `blamed`
    holds, for each fault, the finding that decided its bucket, `credits` the root findings
    that are a right answer to it.
    """

    statuses: list[Status]
    kinds: list[str | None]
    buckets: list[str]
    blamed: list[int | None]
    credits: list[set[int]] = field(default_factory=list)

    @property
    def misled(self) -> bool:
        """Whether at least one finding is false."""
        return "false" in self.statuses


def judge(findings: Sequence[Finding], label: Label, taxonomy: Tree) -> Judgement:
    """Judge the findings of one answer to a case.

    On a healthy or undecidable case every finding is false. On a faulty one each fault gets
    the first bucket of FAULT_BUCKETS from `found` on that applies.
    """
    faults = label.faults if label.verdict == "faulty" else ()
    pairs = pair_up(findings, faults, label.topology, taxonomy)
    chosen = assign(findings, faults, pairs)
    statuses = [
        _symptom_status(finding, faults, taxonomy)
        if finding.role == "symptom"
        else _root_status(i, findings, faults, pairs, chosen)
        for i, finding in enumerate(findings)
    ]
    result = Judgement(statuses, [None] * len(findings), [], [])
    for j, fault in enumerate(faults):
        own = {
            i: pair
            for (i, k), pair in pairs.items()
            if k == j and chosen.get(findings[i].cause, fault.cause) == fault.cause
        }
        bucket, finding_index = _bucket(own, statuses, findings)
        result.buckets.append(bucket)
        result.blamed.append(finding_index)
        result.credits.append(
            {i for i, pair in own.items() if pair.relation == "cause" and pair.located}
        )
    _share_redundancy(result, faults)
    _explain_false(result, findings, label, faults, taxonomy)
    return result


def _symptom_status(finding: Finding, faults: Sequence[Fault], taxonomy: Tree) -> Status:
    """A declared symptom is neutral if a fault has it and its declared root covers that fault."""
    root = finding.caused_by or ""
    declared = any(
        finding.cause in fault.symptoms and relation(root, fault, taxonomy) for fault in faults
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
    related = [
        pair for (k, j), pair in pairs.items() if k == i and target in (None, faults[j].cause)
    ]
    standing = [pair for pair in related if pair.placing != "wrong"]
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
    fitting = {
        "found": [i for i, pair in own.items() if pair.relation == "cause" and pair.located],
        "found_coarse": [i for i, pair in own.items() if pair.located],
        "unlocated": [i for i, pair in own.items() if pair.placing == "none"],
        "mislocated": [i for i in own if statuses[i] == "false"],
    }
    for bucket, indices in fitting.items():
        if indices:
            return bucket, min(indices, key=lambda i: _canonical(findings[i]))
    return "missed", None


def _canonical(finding: Finding) -> tuple[float, str, str]:
    place = "" if finding.locus is None else repr(finding.locus)
    return -finding.confidence, finding.cause, place


def _share_redundancy(result: Judgement, faults: Sequence[Fault]) -> None:
    """Give every member of a redundancy group the best right answer that one of them has."""
    rank = FAULT_BUCKETS.index
    for group in {fault.redundancy_group for fault in faults} - {None}:
        members = [j for j, fault in enumerate(faults) if fault.redundancy_group == group]
        best = min(members, key=lambda j: rank(result.buckets[j]))
        bucket, blamed = result.buckets[best], result.blamed[best]
        right: set[int] = set().union(*(result.credits[j] for j in members))
        for j in members:
            result.credits[j] = right
            if bucket in ("found", "found_coarse") and rank(bucket) < rank(result.buckets[j]):
                result.buckets[j], result.blamed[j] = bucket, blamed


def _explain_false(
    result: Judgement,
    findings: Sequence[Finding],
    label: Label,
    faults: Sequence[Fault],
    taxonomy: Tree,
) -> None:
    """Say how each false finding misleads, and whose fault it stands in the place of.

    A false finding stands for at most one missed fault, of those that it is closest to. One
    that is closer to a fault which is already accounted for explains that one, so it is
    nobody's misattribution.
    """
    false = [i for i, status in enumerate(result.statuses) if status == "false"]
    closeness: dict[int, list[str]] = {}
    for i in false:
        if any(relation(findings[i].cause, fault, taxonomy) for fault in faults):
            result.kinds[i] = "mislocated" if findings[i].role == "root" else "other"
            continue
        closeness[i] = [misattribution(findings[i], f, label, taxonomy) for f in faults]
        result.kinds[i] = min(closeness[i] or [_without_fault(findings[i], label)], key=KINDS.index)
    order = sorted(
        closeness, key=lambda i: (KINDS.index(str(result.kinds[i])), *_canonical(findings[i]))
    )
    for i in order:
        for j, kind in enumerate(closeness[i]):
            if result.buckets[j] == "missed" and kind == result.kinds[i]:
                result.buckets[j], result.blamed[j] = "misattributed", i
                break


def misattribution(finding: Finding, fault: Fault, label: Label, taxonomy: Tree) -> str:
    """Return the first of KINDS that says how `finding` was taken for `fault`."""
    if finding.cause in fault.symptoms:
        return "symptom"
    if finding.locus is not None and fault.victims:
        places = named(finding.locus, "rank", label.topology)
        if places and places <= set(fault.victims):
            return "victim"
    if _without_fault(finding, label) == "decoy":
        return "decoy"
    blamed, true = path(finding.cause, taxonomy), path(fault.cause, taxonomy)
    if len(blamed) > 1 and blamed[:2] == true[:2]:
        return "same_mechanism"
    return "same_domain" if blamed[0] == true[0] else "other"


def _without_fault(finding: Finding, label: Label) -> str:
    looks = {cause for decoy in label.decoys for cause in decoy.looks_like}
    return "decoy" if finding.cause in looks else "other"


def path(name: str, taxonomy: Tree) -> tuple[str, ...]:
    """Return the way down to `name`: domain, mechanism, cause, as far as it goes."""
    return (*reversed(taxonomy.ancestors(name)), name)
