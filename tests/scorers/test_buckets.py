import pytest

from cases.schema import Diagnosis
from scorers import Response, score
from scorers.buckets import is_informed


@pytest.fixture
def bucket(tree):
    def of(label, response):
        return score([label], {"case0": response}, tree).cases["bucket"].item()

    return of


def test_healthy_cases(make, bucket):
    case = make.label()
    assert bucket(case, make.says()) == "quiet"
    assert bucket(case, make.says(make.finding())) == "false_alarm"
    assert bucket(case, make.abstains()) == "abstained"
    assert bucket(case, make.fails("timeout")) == "failed"
    assert bucket(case, make.fails("unsupported")) == "unsupported"


def test_undecidable_cases(make, bucket):
    case = make.undecidable()
    assert bucket(case, make.says()) == "dismissed"
    assert bucket(case, make.says(make.finding("slow_link"))) == "overclaimed"
    assert bucket(case, make.abstains()) == "abstained_blank"
    assert bucket(case, make.abstains(missing_signals=("network",))) == "abstained_informed"
    assert bucket(case, make.fails("invalid")) == "failed"
    assert bucket(case, make.fails("unsupported")) == "unsupported"


def test_faulty_cases(make, bucket):
    case = make.label(make.fault("slow_link"), make.fault("gpu_throttle"))
    link, gpu = make.finding("slow_link", make.at(0)), make.finding("gpu_throttle", make.at(0))
    assert bucket(case, make.says(link, gpu)) == "found"
    assert bucket(case, make.says(link)) == "partial"
    assert bucket(case, make.says(link, gpu, make.finding("slow_loader"))) == "misled"
    assert bucket(case, make.says()) == "missed"
    assert bucket(case, make.abstains()) == "abstained"
    assert bucket(case, make.fails("out_of_memory")) == "failed"
    assert bucket(case, make.fails("unsupported")) == "unsupported"


@pytest.mark.parametrize(
    ("signals", "candidates", "informed"),
    [
        (("network",), (), True),
        (("network.retransmits", "network.tx_bytes"), (), True),
        (("network", "gpu"), (), True),
        (("network", "gpu", "loader"), (), False),  # 1 of 3: naming everything is no knowledge
        (("gpu",), (), False),
        ((), ("slow_link", "lossy_link"), True),
        ((), ("slow_link",), True),
        ((), ("slow_link", "power_cap"), False),
        ((), (), False),
    ],
)
def test_an_informed_abstention_names_signals_or_candidates(make, signals, candidates, informed):
    answer = Diagnosis(verdict="abstain", missing_signals=signals, candidates=candidates)
    assert is_informed(answer, make.undecidable()) is informed


def test_an_unknown_cause_makes_the_answer_invalid(make, tree):
    case = make.label(make.fault())
    scores = score([case], {"case0": make.says(make.finding("gremlins"))}, tree)
    assert scores.cases["outcome"].item() == "invalid"
    assert scores.faults["bucket"].item() == "failed"
    assert len(scores.findings) == 0


def test_abstaining_and_failing_put_every_fault_in_their_bucket(make, tree):
    case = make.label(make.fault("slow_link"), make.fault("gpu_throttle"))
    for response, name in [
        (make.abstains(), "abstained"),
        (make.fails("timeout"), "failed"),
        (make.fails("unsupported"), "unsupported"),
        (Response("case0", "ok", Diagnosis(verdict="healthy"), 0.1), "missed"),
    ]:
        assert list(score([case], {"case0": response}, tree).faults["bucket"]) == [name, name]
