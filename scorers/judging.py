"""One answer against one label, in full: how false findings mislead, and in whose place."""

from __future__ import annotations

from collections.abc import Sequence

from cases.schema import Fault, Finding
from scorers.inputs import Label, Tree
from scorers.lineage import Lineage
from scorers.locus import named
from scorers.settling import Judgement, canonical, settle

KINDS = ("symptom", "victim", "decoy", "same_mechanism", "same_domain", "other")


def judge(findings: Sequence[Finding], label: Label, taxonomy: Tree) -> Judgement:
    """Judge an answer and say of each false finding how it misleads.

    A false finding stands for at most one missed fault, of those that it is closest to. One
    that is closer to a fault which is already accounted for explains that one, so it is
    nobody's misattribution.
    """
    tree = Lineage.of(taxonomy)
    result = settle(findings, label, tree)
    if label.verdict != "faulty":
        result.kinds[:] = [_without_fault(finding, label) for finding in findings]
        return result
    closeness: dict[int, list[str]] = {}
    for i, status in enumerate(result.statuses):
        if status != "false":
            continue
        if i in result.related:
            result.kinds[i] = "mislocated"
        elif findings[i].role == "symptom" and _names_a_fault(findings[i], label, tree):
            result.kinds[i] = "other"
        else:
            kinds = [misattribution(findings[i], fault, label, tree) for fault in label.faults]
            closeness[i] = kinds
            result.kinds[i] = kinds[0] if len(kinds) == 1 else min(kinds, key=KINDS.index)
    if "missed" in result.buckets:
        _stand_for_missed(result, closeness, findings)
    return result


def _names_a_fault(finding: Finding, label: Label, tree: Lineage) -> bool:
    return any(finding.cause in tree.relations(fault) for fault in label.faults)


def _stand_for_missed(
    result: Judgement, closeness: dict[int, list[str]], findings: Sequence[Finding]
) -> None:
    """Give each false finding, the closest first, one missed fault that it was taken for."""
    order = list(closeness)
    if len(order) > 1:
        rank = {i: KINDS.index(str(result.kinds[i])) for i in order}
        order.sort(key=lambda i: (rank[i], *canonical(findings[i])))
    for i in order:
        for j, kind in enumerate(closeness[i]):
            if result.buckets[j] == "missed" and kind == result.kinds[i]:
                result.buckets[j], result.blamed[j] = "misattributed", i
                break


def misattribution(finding: Finding, fault: Fault, label: Label, tree: Lineage) -> str:
    """Return the first of KINDS that says how `finding` was taken for `fault`."""
    if finding.cause in fault.symptoms:
        return "symptom"
    if finding.locus is not None and fault.victims:
        places = named(finding.locus, "rank", label.topology)
        if places and places <= set(fault.victims):
            return "victim"
    if label.decoys and _without_fault(finding, label) == "decoy":
        return "decoy"
    blamed, true = tree.path(finding.cause), tree.path(fault.cause)
    if len(blamed) > 1 and blamed[1] == true[1]:
        return "same_mechanism"
    return "same_domain" if blamed[0] == true[0] else "other"


def _without_fault(finding: Finding, label: Label) -> str:
    looks = label.decoys and any(finding.cause in decoy.looks_like for decoy in label.decoys)
    return "decoy" if looks else "other"
