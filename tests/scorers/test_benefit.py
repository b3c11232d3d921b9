import pytest

from scorers import score


@pytest.fixture
def benefits(make, tree):
    def of(label, *findings):
        row = score([label], {"case0": make.says(*findings)}, tree).cases.iloc[0]
        return [row[f"net_benefit_w{w}"] for w in ("0.5", "1", "2", "5")]

    return of


def test_thresholds_drop_findings_below_w_over_1_plus_w(make, benefits):
    case = make.label(make.fault("slow_link"))
    # Kept while confidence >= 1/3, 1/2, 2/3, 5/6.
    assert benefits(case, make.finding(where=make.at(0), confidence=0.5)) == [1, 1, 0, 0]
    assert benefits(case, make.finding(where=make.at(0), confidence=0.7)) == [1, 1, 1, 0]
    assert benefits(case, make.finding("power_cap", confidence=0.7)) == [-0.5, -1, -2, 0]


def test_found_share_minus_one_penalty_a_case(make, benefits):
    case = make.label(make.fault("slow_link"), make.fault("gpu_throttle"))
    sure = make.finding("slow_link", make.at(0), 0.9)
    wrong = make.finding("slow_loader", confidence=0.6), make.finding("power_cap", confidence=0.6)
    assert benefits(case, sure) == [0.5] * 4
    assert benefits(case, sure, *wrong) == [0, -0.5, 0.5, 0.5]


def test_what_remains_is_judged_anew(make, benefits):
    # The acceptable answer is a surplus beside the unsure true one and finds by itself.
    case = make.label(make.fault("slow_link", acceptable=("lossy_link",)))
    answers = (
        make.finding("slow_link", make.at(0), 0.4),
        make.finding("lossy_link", make.at(0), 0.9),
    )
    assert benefits(case, *answers) == [1, 1, 1, 1]


def test_any_finding_on_healthy_or_undecidable_costs_w(make, benefits):
    for case in (make.label(), make.undecidable()):
        answers = make.finding(confidence=0.6), make.finding("power_cap", confidence=0.7)
        assert benefits(case, *answers) == [-0.5, -1, -2, 0]
        assert benefits(case) == [0, 0, 0, 0]


def test_coarse_and_unlocated_neither_gain_nor_cost(make, benefits):
    case = make.label(make.fault("slow_link"))
    assert benefits(case, make.finding("host_network", make.at(0), 0.9)) == [0] * 4
    assert benefits(case, make.finding("slow_link", confidence=0.9)) == [0] * 4


def test_a_finding_just_as_sure_as_the_threshold_is_kept(make, benefits):
    # At w = 1 the wrong place (0.5) is kept and the right one (0.4) is not.
    case = make.label(make.fault("slow_link", make.at(0)))
    answers = make.finding(where=make.at(0), confidence=0.4), make.finding(where=make.at(3))
    assert benefits(case, *answers) == [1 - 0.5, -1, 0, 0]
