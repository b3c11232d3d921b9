"""The assignment against a slow enumeration of everything that is allowed."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.schema import JOB, Locus
from scorers.judging import judge
from scorers.matching import Pair, assign, pair_up
from scorers.settling import FAULT_BUCKETS

CAUSES = ("slow_link", "lossy_link", "cpu_contention", "gpu_throttle")
NODES = (*CAUSES, "network_path", "host_network")
places = st.sampled_from(
    [JOB, *(Locus(scope="rank", ranks=ranks) for ranks in [(0,), (1,), (0, 1), (2, 3)])]
)
faults = st.lists(
    st.tuples(st.sampled_from(CAUSES), places, st.sets(st.sampled_from(CAUSES), max_size=1)),
    min_size=1,
    max_size=3,
)
findings = st.lists(
    st.tuples(st.sampled_from(NODES), st.none() | places, st.sampled_from([0.2, 0.5, 0.9])),
    min_size=1,
    max_size=5,
)


@pytest.fixture(scope="module")
def case(make):
    def build(faults, findings):
        label = make.label(
            *(make.fault(c, p, acceptable=tuple(sorted(also))) for c, p, also in faults)
        )
        return label, [make.finding(*answer) for answer in findings]

    return build


def worth_slowly(chosen, answers, label, pairs):
    located, causes = 0, 0
    for j, fault in enumerate(label.faults):
        own = [
            pairs[i, j]
            for i, answer in enumerate(answers)
            if chosen.get(answer.cause) == fault.cause and (i, j) in pairs
        ]
        located += any(pair.placing == "right" for pair in own)
        causes += any(pair.relation == "cause" for pair in own)
    used = [
        answer.confidence
        for i, answer in enumerate(answers)
        if any(
            chosen.get(answer.cause) == fault.cause and (i, j) in pairs
            for j, fault in enumerate(label.faults)
        )
    ]
    return located, causes, round(sum(used), 9)


def best_slowly(answers, label, pairs):
    """Try every map from blamed causes to true causes or nothing that is one to one."""
    blamed = sorted({answer.cause for answer in answers})
    true = sorted({fault.cause for fault in label.faults})
    best = (0, 0, 0.0)
    for targets in product([None, *true], repeat=len(blamed)):
        used = [target for target in targets if target]
        if len(used) == len(set(used)):
            chosen = dict(zip(blamed, targets, strict=True))
            best = max(best, worth_slowly(chosen, answers, label, pairs))
    return best


@settings(max_examples=150, deadline=None)
@given(faults=faults, findings=findings)
def test_assignment_is_the_best_there_is(case, tree, faults, findings):
    label, answers = case(faults, findings)
    pairs = pair_up(answers, label.faults, label.topology, tree)
    chosen = assign(answers, label.faults, pairs)
    assert len(set(chosen.values())) == len(chosen)
    assert worth_slowly(chosen, answers, label, pairs) == best_slowly(answers, label, pairs)


@settings(max_examples=150, deadline=None)
@given(faults=faults, findings=findings, data=st.data())
def test_order_of_findings_and_faults_never_matters(case, tree, faults, findings, data):
    label, answers = case(faults, findings)
    other, shuffled = case(data.draw(st.permutations(faults)), data.draw(st.permutations(findings)))
    one, two = judge(answers, label, tree), judge(shuffled, other, tree)
    assert sorted(one.buckets) == sorted(two.buckets)
    assert sorted(one.statuses) == sorted(two.statuses)


@settings(max_examples=150, deadline=None)
@given(faults=faults, findings=findings)
def test_each_fault_is_in_one_bucket_that_its_findings_bear_out(case, tree, faults, findings):
    label, answers = case(faults, findings)
    result = judge(answers, label, tree)
    assert set(result.buckets) <= set(FAULT_BUCKETS)
    assert len(result.buckets) == len(faults)
    for j, bucket in enumerate(result.buckets):
        assert (bucket == "found") == bool(result.credits[j])
        blamed = result.blamed[j]
        assert (blamed is None) == (bucket == "missed")
        if bucket in ("mislocated", "misattributed"):
            assert result.statuses[blamed] == "false"
    for status, kind in zip(result.statuses, result.kinds, strict=True):
        assert (status == "false") == (kind is not None)


def test_located_goes_before_cause_and_cause_before_confidence(make, tree):
    label = make.label(make.fault("slow_link", make.at(0)))

    def matched(*answers):
        pairs = pair_up(answers, label.faults, label.topology, tree)
        return assign(answers, label.faults, pairs)

    coarse_in_place = make.finding("host_network", make.at(0), 0.1)
    cause_elsewhere = make.finding("slow_link", make.at(3), 0.9)
    assert matched(coarse_in_place, cause_elsewhere) == {"host_network": "slow_link"}
    coarse_but_sure = make.finding("host_network", make.at(0), 0.9)
    cause_in_place = make.finding("slow_link", make.at(0), 0.1)
    assert matched(coarse_but_sure, cause_in_place) == {"slow_link": "slow_link"}


def test_equal_confidence_is_settled_by_the_alphabet(make, tree):
    label = make.label(make.fault("slow_link", acceptable=("lossy_link", "power_cap")))
    answers = [make.finding(cause, make.at(0)) for cause in ("power_cap", "lossy_link")]
    pairs = pair_up(answers, label.faults, label.topology, tree)
    assert pairs == {(0, 0): Pair("cause", "right"), (1, 0): Pair("cause", "right")}
    assert assign(answers, label.faults, pairs) == {"lossy_link": "slow_link"}


def test_a_finding_at_confidence_zero_still_counts(make, tree):
    label = make.label(make.fault("slow_link"))
    answers = [make.finding("host_network", confidence=0.0)]
    assert judge(answers, label, tree).buckets == ["unlocated"]
