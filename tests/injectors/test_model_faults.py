"""Faults of the model and its framework in real jobs: each witness knows its own recording."""

import pytest

pytest.importorskip("torch", reason="recording needs torch: pip install 'evalharness[record]'")

from cases.bundle import write_case
from cases.case import Case
from cases.witness import holds
from injectors.capabilities import network_shaping
from injectors.matrix import check_here, run_session
from injectors.public import describe, read_window, this_environment
from injectors.scenario import HEALTHY, Scenario

SMALL = {"layers": 2, "d_model": 32, "heads": 2, "sequence_length": 32, "vocabulary": 64}
ALONE = {
    "attention_backend_fallback": {"layers": 2},
    "blocking_metric_io": {"response_s": 0.05},
    "debug_env_left_on": {},
    "foreach_disabled": {},
    "kernel_launch_bound": {"pieces": 4},
    "padding_waste": {"padded_tokens": 128},
    "precision_fallback": {"layers": 2},
    "python_gc_pause": {"records_per_micro_batch": 40_000},
}
TOGETHER = {
    "comm_overlap_lost": {"buckets": 99},
    "grad_sync_every_microbatch": {},
    "precision_fallback": {"to": "float64"},
    "python_gc_pause": {"records_per_micro_batch": 20_000, "rank": 1},
    "sequence_length_imbalance": {},
    "undersized_buckets": {"bucket_mb": 0.001},
}


def scenario(arms, **more):
    content = {
        "name": "small",
        "workload": "language_model",
        "pinned": True,
        "steps": 24,
        "profiled_steps": 4,
        "trials": {"blocks": 4, "fresh": 4, "steps": 4, "null_pairs": 8},
        "arms": {name: {"fault": name, "parameters": given} for name, given in arms.items()},
        "cases": [{"arm": HEALTHY}, *({"arm": name} for name in arms)],
    }
    return Scenario.model_validate(content | more)


def recorded(plan, folder, networked=False):
    """Record a scenario; return each arm's case, none of them proven."""
    scratch = folder / "scratch"
    scratch.mkdir()
    run_session(plan, scratch, networked, lambda phase, done, total: None)
    environment, devices = this_environment(2, {})
    reference = read_window(scratch / "reference")
    cases = {}
    for number, case in enumerate(plan.cases):
        run = read_window(scratch / f"case-{number}")
        info = describe(plan, f"case-{number}", run, environment, devices)
        write_case(folder / info.id, info, run.tables, run.traces, reference)
        cases[case.arm] = Case.open(folder / info.id)
    return cases


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One rank: a job in bfloat16 with the library's attention and room for padding."""
    parameters = SMALL | {"precision": "bfloat16", "attention": "sdpa", "max_length": 128}
    plan = scenario(ALONE, parameters=parameters)
    return plan, recorded(plan, tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """Two ranks that accumulate gradients over mixed lengths, joined by a link of 200 Mbit/s."""
    capability = network_shaping()
    if not capability.ok:
        pytest.skip(capability.reason)
    mixed = {"micro_batches": 2, "max_length": 128, "mixed_lengths": True}
    plan = scenario(
        TOGETHER, parameters=SMALL | mixed, ranks=2, bucket_mb=0.02, link_mbit_per_s=200
    )
    return plan, recorded(plan, tmp_path_factory.mktemp("together"), networked=True)


@pytest.mark.parametrize("cause", ALONE)
def test_witness_is_true_on_its_own_recording_alone(alone, cause):
    plan, cases = alone
    sql, _ = plan.faults()[cause].witness()
    assert [arm for arm, case in cases.items() if holds(case, sql)] == [cause]


@pytest.mark.parametrize("cause", TOGETHER)
def test_witness_is_true_on_its_own_recording_alone_with_two_ranks(together, cause):
    plan, cases = together
    sql, _ = plan.faults()[cause].witness()
    assert [arm for arm, case in cases.items() if holds(case, sql)] == [cause]


@pytest.mark.parametrize("jobs", ["alone", "together"])
def test_witness_that_needs_no_reference_agrees(jobs, request):
    plan, cases = request.getfixturevalue(jobs)
    asked = {name: fault.audit_witness() for name, fault in plan.faults().items()}
    for name, witness in asked.items():
        if witness:
            assert [arm for arm, case in cases.items() if holds(case, witness[0])] == [name]
    assert any(asked.values())


def test_sync_with_the_host_is_refused_by_name_without_a_gpu():
    from cases.errors import ScenarioError
    from injectors.capabilities import cuda

    if cuda().ok:
        pytest.skip("there is a CUDA device here")
    plan = scenario({"host_device_sync": {"gradients": 8}})
    with pytest.raises(ScenarioError, match="needs cuda, which does not work here"):
        check_here(plan)


@pytest.mark.parametrize(
    ("cause", "given", "parameters", "says"),
    [
        ("precision_fallback", {}, {}, "float32 is a fallback only from precision bfloat16"),
        ("precision_fallback", {"to": "float64"}, {}, "collectives of 2 ranks alone"),
    ],
)
def test_jobs_that_cannot_show_a_fault_are_refused(cause, given, parameters, says):
    with pytest.raises(ValueError, match=says):
        scenario({cause: given}, parameters=parameters)


@pytest.mark.parametrize(
    ("cause", "parameters", "ranks"),
    [
        ("grad_sync_every_microbatch", {"micro_batches": 2}, 2),
        ("attention_backend_fallback", {"attention": "sdpa"}, 1),
        ("padding_waste", {"max_length": 128}, 1),
        ("sequence_length_imbalance", {"max_length": 128, "mixed_lengths": True}, 2),
    ],
)
def test_faults_fit_the_jobs_that_have_what_they_spoil(cause, parameters, ranks):
    from injectors.faults import FAULTS

    plain = scenario({}, parameters=SMALL, ranks=ranks)
    fitting = scenario({}, parameters=SMALL | parameters, ranks=ranks)
    assert not FAULTS[cause].fits(plain)
    assert FAULTS[cause].fits(fitting)
