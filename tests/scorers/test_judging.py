import pytest

from cases.schema import JOB, Locus
from scorers.judging import judge


@pytest.fixture
def judged(make, tree):
    def run(label, *findings):
        result = judge(findings, label, tree)
        return result.buckets, result.statuses, result.kinds

    return run


def test_a_cause_at_its_place_is_found(make, judged):
    case = make.label(make.fault("slow_link", make.at(0)))
    answer = make.finding("slow_link", make.at(0))
    assert judged(case, answer) == (["found"], ["true"], [None])


@pytest.mark.parametrize(
    ("cause", "where", "bucket", "status"),
    [
        ("network_path", (0,), "found_coarse", "coarse"),
        ("host_network", (0,), "found_coarse", "coarse"),
        ("slow_link", None, "unlocated", "coarse"),
        ("host_network", None, "unlocated", "coarse"),
        ("slow_link", (1,), "mislocated", "false"),
        ("host_network", (1,), "mislocated", "false"),
        ("lossy_link", (0,), "misattributed", "false"),
    ],
)
def test_one_finding_on_one_fault(make, judged, cause, where, bucket, status):
    case = make.label(make.fault("slow_link", make.at(0)))
    answer = make.finding(cause, make.at(*where) if where else None)
    assert judged(case, answer)[:2] == ([bucket], [status])


def test_no_place_is_no_place_even_in_a_job_of_one_rank(make, judged):
    case = make.label(make.fault("slow_link", JOB), ranks=1)
    assert judged(case, make.finding("slow_link"))[0] == ["unlocated"]
    assert judged(case, make.finding("slow_link", make.at(0)))[0] == ["found"]


def test_two_ranks_and_both_named_apart(make, judged):
    case = make.label(make.fault(where=make.at(0)), make.fault(where=make.at(1)))
    answers = make.finding(where=make.at(0)), make.finding(where=make.at(1))
    assert judged(case, *answers)[:2] == (["found", "found"], ["true", "true"])


def test_one_cause_on_two_ranks_as_one_finding(make, judged):
    case = make.label(make.fault(where=make.at(0)), make.fault(where=make.at(1)), ranks=2)
    assert judged(case, make.finding(where=make.at(0, 1)))[:2] == (["found", "found"], ["true"])


def test_one_fault_on_many_ranks_named_rank_by_rank(make, judged):
    case = make.label(make.fault(where=make.at(0, 1, 2, 3)), ranks=8)
    answers = [make.finding(where=make.at(rank)) for rank in range(4)]
    assert judged(case, *answers)[:2] == (["found"], ["true"] * 4)


def test_what_is_elsewhere_is_false_even_where_the_union_is_right(make, judged):
    # Together 0, 1, 2, 7 of 0, 1, 2, 3: Jaccard 3/5, 3/4 - 1/4 = 1/2.
    case = make.label(make.fault(where=make.at(0, 1, 2, 3)), ranks=8)
    answers = make.finding(where=make.at(0, 1, 2)), make.finding(where=make.at(7))
    assert judged(case, *answers)[:2] == (["found"], ["true", "false"])


def test_a_right_union_credits_only_faults_of_which_it_covers_half(make, judged):
    # 0 to 3 of 0 to 5: Jaccard 2/3; but only one of the second fault's three ranks.
    case = make.label(
        make.fault(where=make.at(0, 1, 2)), make.fault(where=make.at(3, 4, 5)), ranks=16
    )
    answer = make.finding(where=make.at(0, 1, 2, 3))
    assert judged(case, answer)[:2] == (["found", "missed"], ["true"])


def test_one_of_two_places_named_finds_one_and_misses_the_other(make, judged):
    case = make.label(make.fault(where=make.at(0)), make.fault(where=make.at(1)))
    assert judged(case, make.finding(where=make.at(0)))[:2] == (["found", "missed"], ["true"])


def test_one_right_and_one_wrong_place_of_two(make, judged):
    case = make.label(make.fault(where=make.at(0)), make.fault(where=make.at(1)), ranks=8)
    answers = make.finding(where=make.at(0)), make.finding(where=make.at(5))
    assert judged(case, *answers) == (
        ["found", "mislocated"],
        ["true", "false"],
        [None, "mislocated"],
    )


def test_naming_every_rank_one_by_one_is_right_once(make, judged):
    case = make.label(make.fault(where=make.at(1)))
    answers = [make.finding(where=make.at(rank)) for rank in range(4)]
    assert judged(case, *answers)[:2] == (["found"], ["false", "true", "false", "false"])


def test_right_cause_on_the_victim_is_mislocated(make, judged):
    case = make.label(make.fault(where=make.at(0), victims=(1, 2, 3)))
    assert judged(case, make.finding(where=make.at(1))) == (
        ["mislocated"],
        ["false"],
        ["mislocated"],
    )


@pytest.mark.parametrize(
    ("blamed", "where", "kind"),
    [
        ("collective_wait", (0,), "symptom"),
        ("slow_loader", (1, 2), "victim"),
        ("gpu_throttle", (0,), "decoy"),
        ("lossy_link", (0,), "same_mechanism"),
        ("network_path", (0,), None),
        ("cpu_contention", (0,), "same_domain"),
        ("undersized_buckets", (0,), "other"),
    ],
)
def test_kinds_of_misattribution(make, judged, blamed, where, kind):
    case = make.label(
        make.fault("slow_link", make.at(0), symptoms=("collective_wait",), victims=(1, 2, 3)),
        decoys=(make.decoy("gpu_throttle"),),
    )
    buckets, _, kinds = judged(case, make.finding(blamed, make.at(*where)))
    assert kinds == [kind]
    assert buckets == ["misattributed" if kind else "found_coarse"]


def test_an_operator_is_no_victim(make, judged):
    case = make.label(make.fault(victims=(1, 2, 3)))
    where = Locus(scope="op", ops=("aten::mm",))
    assert judged(case, make.finding("slow_loader", where))[2] == ["other"]


def test_root_and_its_symptom_both_named_as_roots(make, judged):
    case = make.label(make.fault(symptoms=("collective_wait",)))
    answers = make.finding(where=make.at(0)), make.finding("collective_wait", JOB)
    assert judged(case, *answers) == (["found"], ["true", "false"], [None, "symptom"])


@pytest.mark.parametrize(
    ("cause", "caused_by", "status"),
    [
        ("collective_wait", "slow_link", "neutral"),
        ("collective_wait", "network_path", "neutral"),
        ("collective_wait", "gpu_throttle", "false"),
        ("slow_loader", "slow_link", "false"),
        ("slow_link", "slow_link", "false"),
    ],
)
def test_declared_symptoms(make, judged, cause, caused_by, status):
    case = make.label(make.fault(symptoms=("collective_wait",)))
    symptom = make.finding(cause, role="symptom", caused_by=caused_by)
    buckets, statuses, _ = judged(case, make.finding(where=make.at(0)), symptom)
    assert (buckets, statuses) == (["found"], ["true", status])


def test_calling_the_root_a_symptom_does_not_find_it(make, judged):
    case = make.label(make.fault("slow_link"))
    root = make.finding("collective_wait", JOB)
    symptom = make.finding("slow_link", make.at(0), role="symptom", caused_by="collective_wait")
    assert judged(case, root, symptom) == (
        ["misattributed"],
        ["false", "false"],
        ["other", "other"],
    )


def test_an_acceptable_answer_beside_the_true_one_is_neutral(make, judged):
    case = make.label(make.fault(acceptable=("lossy_link",)))
    answers = (
        make.finding("lossy_link", make.at(0), 0.4),
        make.finding("slow_link", make.at(0), 0.6),
    )
    assert judged(case, *answers)[:2] == (["found"], ["neutral", "true"])
    assert judged(case, answers[0])[:2] == (["found"], ["true"])


def test_an_acceptable_answer_in_a_wrong_place_is_false(make, judged):
    case = make.label(make.fault(acceptable=("lossy_link",)))
    answers = make.finding("lossy_link", make.at(3)), make.finding("slow_link", make.at(0))
    assert judged(case, *answers)[:2] == (["found"], ["false", "true"])


def test_any_member_of_a_redundancy_group_is_right(make, judged):
    case = make.label(
        make.fault("slow_link", redundancy_group="a"),
        make.fault("gpu_throttle", redundancy_group="a"),
        make.fault("slow_loader"),
    )
    assert judged(case, make.finding("gpu_throttle", make.at(0)))[:2] == (
        ["found", "found", "missed"],
        ["true"],
    )
    both = make.finding("gpu_throttle", make.at(0)), make.finding("slow_link", make.at(0))
    assert judged(case, *both)[:2] == (["found", "found", "missed"], ["true", "true"])


def test_a_redundancy_group_is_not_satisfied_by_a_wrong_place(make, judged):
    case = make.label(
        make.fault("slow_link", redundancy_group="a"),
        make.fault("gpu_throttle", redundancy_group="a"),
    )
    assert judged(case, make.finding("gpu_throttle", make.at(3)))[0] == ["missed", "mislocated"]


def test_one_false_finding_stands_for_one_missed_fault(make, judged):
    case = make.label(make.fault("slow_link"), make.fault("gpu_throttle"))
    assert judged(case, make.finding("power_cap", make.at(0)))[0] == ["missed", "misattributed"]


def test_a_symptom_of_a_found_fault_explains_no_other(make, judged):
    case = make.label(
        make.fault("slow_link", symptoms=("collective_wait",)), make.fault("gpu_throttle")
    )
    answers = make.finding("slow_link", make.at(0)), make.finding("collective_wait", JOB)
    assert judged(case, *answers)[:2] == (["found", "missed"], ["true", "false"])


def test_saying_nothing_misses(make, judged):
    assert judged(make.label(make.fault())) == (["missed"], [], [])


def test_every_finding_on_a_healthy_or_undecidable_case_is_false(make, judged):
    healthy = make.label(decoys=(make.decoy("gpu_throttle"),))
    answers = make.finding("gpu_throttle"), make.finding("slow_link")
    assert judged(healthy, *answers) == ([], ["false", "false"], ["decoy", "other"])
    assert judged(make.undecidable(), *answers)[1] == ["false", "false"]


def test_a_link_named_by_its_ends_is_not_located(make, judged):
    case = make.label(make.fault(where=Locus(scope="link", links=("link0",))))
    assert judged(case, make.finding(where=make.at(0, 1)))[0] == ["mislocated"]
    named = Locus(scope="link", links=("link0",))
    assert judged(case, make.finding(where=named))[0] == ["found"]
