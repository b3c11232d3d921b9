"""Matching and buckets against a second implementation, written for clearness and not speed.

It follows docs/scoring.md sentence by sentence, tries every one-to-one map of blamed to true
causes, counts places in fractions, and shares no code with scorers.
"""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.schema import JOB, Locus
from scorers.judging import judge

CAUSES = ("slow_link", "lossy_link", "cpu_contention", "gpu_throttle")
NODES = (*CAUSES, "network_path", "host_network")
RANKS = 4
KINDS = ["symptom", "victim", "decoy", "same_mechanism", "same_domain", "other"]


# --- places -----------------------------------------------------------------------------------


def ranks_of(locus):
    """Two ranks a host, a ring of links, as the fixtures' topology has it."""
    if locus.scope == "job":
        return set(range(RANKS))
    if locus.scope == "rank":
        return set(locus.ranks)
    if locus.scope == "host":
        return {rank for rank in range(RANKS) if f"host{rank // 2}" in locus.hosts}
    if locus.scope == "link":
        return {r for name in locus.links for r in (int(name[4:]), (int(name[4:]) + 1) % RANKS)}
    return set()


def places_of(locus, true):
    if true.scope == "link":
        return set(locus.links) if locus.scope == "link" else set()
    return ranks_of(locus)


def right_place(found, true_places, true):
    if true.scope == "job":
        return found == set(range(RANKS))
    if not found:
        return False
    jaccard = Fraction(len(found & true_places), len(found | true_places))
    others = RANKS - len(true_places)  # there are as many links as ranks
    excess = Fraction(len(found - true_places), others) if others else 0
    covered = Fraction(len(found & true_places), len(true_places))
    return jaccard >= Fraction(1, 2) and covered - excess >= Fraction(1, 2)


def placing(finding, fault, findings, faults):
    if finding.locus is None:
        return "none"
    own = places_of(finding.locus, fault.locus)
    true = places_of(fault.locus, fault.locus)
    if right_place(own, true, fault.locus):
        return "right"
    said = set()
    for other in findings:
        if other.cause == finding.cause and other.locus is not None and other.role == "root":
            said |= places_of(other.locus, fault.locus)
    wanted = set()
    for other in faults:
        if other.cause == fault.cause and sort_of(other.locus) == sort_of(fault.locus):
            wanted |= places_of(other.locus, other.locus)
    united = right_place(said, wanted, fault.locus)
    names_one = bool(own & true)
    half = 2 * len(said & true) >= len(true)
    return "right" if united and names_one and half else "wrong"


def sort_of(locus):
    return locus.scope if locus.scope in ("job", "link") else "rank"


# --- causes -----------------------------------------------------------------------------------


def relation(name, fault, tree):
    right = [fault.cause, *fault.acceptable]
    if name in right:
        return "cause"
    return "ancestor" if any(tree.covers(name, cause) for cause in right) else None


def matched(findings, faults, tree):
    """Every one-to-one map from blamed to true causes; the best, of equals the first."""
    blamed = sorted({f.cause for f in findings if f.role == "root"})
    true = sorted({fault.cause for fault in faults})
    best, chosen = None, {}
    for targets in product([*true, None], repeat=len(blamed)):
        taken = [target for target in targets if target]
        pairs = {b: t for b, t in zip(blamed, targets, strict=True) if t}
        if len(taken) != len(set(taken)) or not all(
            meets(b, t, faults, tree) for b, t in pairs.items()
        ):
            continue
        worth = worth_of(pairs, findings, faults, tree)
        if best is None or worth > best:
            best, chosen = worth, pairs
    return chosen


def meets(blamed, true, faults, tree):
    return any(fault.cause == true and relation(blamed, fault, tree) for fault in faults)


def worth_of(pairs, findings, faults, tree):
    located = causes = 0
    surest = Fraction(0)
    used = set()
    for fault in faults:
        own = [
            (i, relation(f.cause, fault, tree), placing(f, fault, findings, faults))
            for i, f in enumerate(findings)
            if f.role == "root" and pairs.get(f.cause) == fault.cause
        ]
        own = [(i, how, where) for i, how, where in own if how]
        located += any(where == "right" for _, _, where in own)
        causes += any(how == "cause" for _, how, _ in own)
        used |= {i for i, _, _ in own}
    for i in used:
        surest += Fraction(findings[i].confidence)
    return located, causes, surest, len(pairs)


# --- findings and faults ----------------------------------------------------------------------


def status_of(finding, findings, faults, pairs, tree):
    if finding.role == "symptom":
        told = any(
            finding.cause in fault.symptoms and relation(finding.caused_by, fault, tree)
            for fault in faults
        )
        return "neutral" if told else "false"
    target = pairs.get(finding.cause)
    related = [
        (relation(finding.cause, fault, tree), placing(finding, fault, findings, faults))
        for fault in faults
        if relation(finding.cause, fault, tree) and target in (None, fault.cause)
    ]
    standing = [pair for pair in related if pair[1] != "wrong"]
    if not standing:
        return "false"
    if all(how == "ancestor" for how, _ in standing):
        return "coarse"
    if target is None:
        return "neutral"
    return "true" if ("cause", "right") in standing else "coarse"


def bucket_of(fault, findings, faults, pairs, statuses, tree):
    own = [
        (i, relation(f.cause, fault, tree), placing(f, fault, findings, faults))
        for i, f in enumerate(findings)
        if f.role == "root"
        and relation(f.cause, fault, tree)
        and pairs.get(f.cause, fault.cause) == fault.cause
    ]
    if any(how == "cause" and where == "right" for _, how, where in own):
        return "found"
    if any(where == "right" for _, _, where in own):
        return "found_coarse"
    if any(where == "none" for _, _, where in own):
        return "unlocated"
    if any(statuses[i] == "false" for i, _, _ in own):
        return "mislocated"
    return "missed"


def kind_of(finding, fault, label, tree):
    if finding.cause in fault.symptoms:
        return "symptom"
    if finding.locus is not None and fault.victims:
        where = ranks_of(finding.locus)
        if where and where <= set(fault.victims):
            return "victim"
    if any(finding.cause in decoy.looks_like for decoy in label.decoys):
        return "decoy"
    one = [*reversed(tree.ancestors(finding.cause)), finding.cause]
    other = [*reversed(tree.ancestors(fault.cause)), fault.cause]
    if one[1:2] == other[1:2]:
        return "same_mechanism"
    return "same_domain" if one[0] == other[0] else "other"


def judge_slowly(findings, label, tree):
    faults = label.faults
    pairs = matched(findings, faults, tree)
    statuses = [status_of(f, findings, faults, pairs, tree) for f in findings]
    buckets = [bucket_of(fault, findings, faults, pairs, statuses, tree) for fault in faults]
    order = ["found", "found_coarse", "unlocated", "mislocated", "misattributed", "missed"]
    for j, fault in enumerate(faults):
        group = [
            buckets[k]
            for k, other in enumerate(faults)
            if fault.redundancy_group and other.redundancy_group == fault.redundancy_group
        ]
        best = min(group, key=order.index, default=buckets[j])
        if best in ("found", "found_coarse"):
            buckets[j] = min(best, buckets[j], key=order.index)
    kinds = [None] * len(findings)
    strangers = []
    for i, finding in enumerate(findings):
        if statuses[i] == "false":
            if any(relation(finding.cause, fault, tree) for fault in faults):
                kinds[i] = "mislocated" if finding.role == "root" else "other"
            else:
                each = [kind_of(finding, fault, label, tree) for fault in faults]
                kinds[i] = min(each, key=KINDS.index)
                strangers.append(
                    (KINDS.index(kinds[i]), -finding.confidence, finding.cause, i, each)
                )
    for _, _, _, i, each in sorted(strangers, key=lambda stranger: stranger[:3]):
        for j, kind in enumerate(each):
            if buckets[j] == "missed" and kind == kinds[i]:
                buckets[j] = "misattributed"
                break
    return buckets, statuses, kinds


# --- the comparison ---------------------------------------------------------------------------

places = st.sampled_from(
    [
        JOB,
        *(Locus(scope="rank", ranks=ranks) for ranks in [(0,), (1,), (0, 1), (2, 3), (0, 1, 2)]),
        Locus(scope="host", hosts=("host0",)),
        Locus(scope="link", links=("link0",)),
        Locus(scope="link", links=("link0", "link1")),
    ]
)
faults = st.lists(
    st.fixed_dictionaries(
        {
            "cause": st.sampled_from(CAUSES),
            "where": places,
            "acceptable": st.sets(st.sampled_from(CAUSES), max_size=1).map(tuple),
            "symptoms": st.sets(st.sampled_from(["collective_wait", *CAUSES]), max_size=1).map(
                tuple
            ),
            "victims": st.sampled_from([(), (1, 2, 3), (0, 1)]),
            "redundancy_group": st.sampled_from([None, None, "a"]),
        }
    ),
    min_size=1,
    max_size=3,
)
roots = st.fixed_dictionaries(
    {
        "cause": st.sampled_from([*NODES, "collective_wait", "power_cap"]),
        "where": st.none() | places,
        "confidence": st.sampled_from([0.25, 0.5, 0.75]),
    }
)
symptoms = st.fixed_dictionaries(
    {
        "cause": st.sampled_from(["collective_wait", *CAUSES]),
        "role": st.just("symptom"),
        "caused_by": st.sampled_from(NODES),
    }
)
decoys = st.sets(st.sampled_from(["power_cap", *CAUSES]), max_size=1)


@settings(max_examples=400, deadline=None)
@given(
    faults=faults,
    said=st.lists(roots, min_size=1, max_size=4),
    also=st.lists(symptoms, max_size=1),
    looks=decoys,
)
def test_judged_as_the_page_says(make, tree, faults, said, also, looks):
    label = make.label(
        *(make.fault(**fault) for fault in faults), decoys=(make.decoy(*sorted(looks)),)
    )
    findings = [make.finding(**finding) for finding in (*said, *also)]
    result = judge(findings, label, tree)
    buckets, statuses, kinds = judge_slowly(findings, label, tree)
    assert result.statuses == statuses
    assert result.kinds == kinds
    assert result.buckets == buckets


def test_the_second_implementation_can_disagree(make, tree):
    # It is no copy: given another place for the fault, it says otherwise.
    finding = make.finding("slow_link", make.at(0))
    here = judge_slowly([finding], make.label(make.fault(where=make.at(0))), tree)
    elsewhere = judge_slowly([finding], make.label(make.fault(where=make.at(3))), tree)
    assert (here[0], elsewhere[0]) == (["found"], ["mislocated"])


@pytest.mark.parametrize("found", [{0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}, set()])
def test_its_places_by_hand(found):
    # Of rank 0 among four: alone, and with one more (1/2, 1 - 1/3), but not with two or three.
    assert right_place(found, {0}, Locus(scope="rank", ranks=(0,))) is (found in ({0}, {0, 1}))
