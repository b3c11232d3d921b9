"""Groups of simulated cases: what is compared, what is shipped, what is refused."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from cases.bundle import RunData
from cases.truth import Counterfactual
from injectors.scenario import Arm, Scenario
from injectors.sim.aiming import Aim, Dial
from injectors.sim.backend import Group, candidates_of, missing
from injectors.sim.made import MadeCase

JOB: dict[str, Any] = {
    "name": "small",
    "workload": "ddp_transformer",
    "machine": "h100",
    "ranks": 2,
    "steps": 20,
    "profiled_steps": 2,
    "parameters": {"layers": 2, "hidden": 1024, "heads": 16, "sequence": 512, "micro_batch": 4},
}
GEMM = {"layers": 1, "family": "gemm"}
ARMS = {
    "slow": {"fault": "kernel_regression", "parameters": {**GEMM, "efficiency": 0.4}},
    "mild": {"fault": "kernel_regression", "parameters": {**GEMM, "efficiency": 0.995}},
    "churn": {"fault": "recompilation_churn", "parameters": {"every": 4, "compile_s": 0.05}},
    "two": {"both": ["slow", "churn"]},
}


def group(*cases: dict[str, str], private_seed: int | None = None, **changes: Any) -> Group:
    arms = {"arms": ARMS, "cases": [{"arm": "healthy"}, *cases]}
    return Group(Scenario.model_validate(JOB | arms | changes), private_seed)


@pytest.fixture(scope="module")
def made() -> tuple[MadeCase, ...]:
    """The twin, a slow case, one with two faults, one whose signals are withheld."""
    found = group(
        {"arm": "slow"},
        {"arm": "two"},
        {"arm": "slow", "withhold": "all_but_progress"},
        {"arm": "healthy", "withhold": "all_but_progress"},
    ).make()
    assert not found.refused
    return found.cases


def counterfactual(case: MadeCase) -> Counterfactual:
    assert isinstance(case.truth.validation, Counterfactual)
    return case.truth.validation


def test_the_twin_comes_first_and_all_name_it(made: tuple[MadeCase, ...]) -> None:
    twin, *others = made
    assert twin.truth.verdict == "healthy" and twin.truth.twin is None
    assert {case.truth.twin for case in others} == {twin.info.id}
    assert [case.truth.verdict for case in made] == [
        "healthy", "faulty", "faulty", "undecidable", "healthy",
    ]  # fmt: skip


def test_the_cost_is_the_difference_under_the_same_seed(made: tuple[MadeCase, ...]) -> None:
    seconds = counterfactual(made[1]).seconds
    (without,), (with_,) = seconds["none"], seconds["0"]
    cost = made[1].truth.faults[0].lost_fraction
    assert cost.value == pytest.approx((with_ - without) / with_, abs=1e-9)
    assert cost.low == cost.value == cost.high
    assert counterfactual(made[0]).seconds == {"none": seconds["none"]}


def test_two_faults_are_run_in_every_set_and_share_the_cost(made: tuple[MadeCase, ...]) -> None:
    seconds = counterfactual(made[2]).seconds
    assert {*seconds} == {"none", "0", "1", "0+1"}
    shares = [fault.lost_fraction.value for fault in made[2].truth.faults]
    (none,), (both,) = seconds["none"], seconds["0+1"]
    assert sum(shares) == pytest.approx((both - none) / both, abs=1e-8)
    assert [fault.cause for fault in made[2].truth.faults] == [
        "kernel_regression",
        "recompilation_churn",
    ]


def test_what_is_shipped_has_a_seed_of_its_own(made: tuple[MadeCase, ...]) -> None:
    means = [
        float(steps.loc[steps["step"] > 0, "duration_ns"].mean())
        for steps in (case.tables["steps"] for case in made)
    ]
    assert len({*means}) == len(means)
    assert counterfactual(made[1]).shipped_ratio == pytest.approx(means[1] / means[0], rel=0.001)


def test_cases_of_a_group_share_the_reference_run(made: tuple[MadeCase, ...]) -> None:
    assert made[0].reference is made[1].reference is made[2].reference
    assert made[0].reference is not None and made[3].reference is not None
    assert {*made[0].reference.tables} > {*made[3].reference.tables} == {"steps"}


def test_what_is_withheld_is_missing_and_named(made: tuple[MadeCase, ...]) -> None:
    hidden = made[3]
    assert {*hidden.tables} == {"steps"} and not hidden.traces
    assert {"collectives", "trace_events"} <= {*hidden.truth.missing_signals}
    assert "forward_ns" not in hidden.tables["steps"]
    assert {"kernel_regression", "recompilation_churn"} <= {*hidden.truth.candidates}
    assert hidden.truth.witness is None


def test_the_public_half_describes_the_job_alone(made: tuple[MadeCase, ...]) -> None:
    described = [case.info.model_dump(exclude={"id", "environment", "signals"}) for case in made]
    assert all(one == described[0] for one in described)
    settings = [case.info.environment.model_dump(exclude={"versions"}) for case in made]
    assert all(one == settings[0] for one in settings)
    assert all({*case.traces} == {0, 1} for case in made[:3])


def test_versions_say_nothing_where_signals_are_withheld(made: tuple[MadeCase, ...]) -> None:
    """A faulty kernel may have come with an upgrade; so may anything that can't be seen."""
    twin, slow, _, hidden, healthy = (case.info.environment.versions for case in made)
    assert slow != twin
    assert hidden == healthy == slow


def test_ids_are_opaque_and_of_their_own(made: tuple[MadeCase, ...]) -> None:
    ids = {case.info.id for case in made}
    other = {case.info.id for case in group(private_seed=1).make().cases}
    assert len(ids) == len(made) and not ids & other
    assert all(len(name) == 12 and {*name} <= {*"0123456789abcdef"} for name in ids)


def test_what_costs_next_to_nothing_is_a_decoy() -> None:
    _, case = group({"arm": "mild"}).make().cases
    (decoy,) = case.truth.decoys
    assert case.truth.verdict == "healthy" and not case.truth.faults
    assert decoy.name == "below_threshold" and decoy.looks_like == ("kernel_regression",)
    assert 1 <= counterfactual(case).ratio.value < 1.03


def test_what_lies_between_is_refused_with_its_numbers() -> None:
    plain = group({"arm": "slow"})
    ends = (
        Arm(fault="kernel_regression", parameters={**GEMM, "efficiency": efficiency})
        for efficiency in (0.99, 0.4)
    )
    found = Group(plain.scenario, aims=(Aim("slow", 1.04, Dial(*ends)),)).make()
    assert len(found.cases) == 1
    (reason,) = found.refused.values()
    assert "neither healthy nor faulty: ratio 1.0" in reason
    assert [*found.refused] == ["small/slow/nothing"]


def test_a_decoy_that_costs_something_is_refused() -> None:
    arms = {"starved": {"decoy": "hidden_slow_read", "parameters": {"megabytes_per_s": 2}}}
    job = {"workload": "vision", "parameters": {"micro_batch": 96, "workers": 2}, "arms": arms}
    found = group(**job, cases=[{"arm": "healthy"}, {"arm": "starved"}]).make()
    assert len(found.cases) == 1
    (reason,) = found.refused.values()
    assert reason.startswith("what should cost nothing is no decoy here: ratio ")


def test_an_audit_has_no_reference_and_looked_for_headroom() -> None:
    (case,) = group(question="audit").make().cases
    assert case.reference is None
    assert case.info.question == "audit" and case.info.objective
    assert {"dataloader_cpu_bound", "sync_checkpoint"} <= {*counterfactual(case).ablated}


def test_candidates_are_those_that_fit_the_job() -> None:
    one_host = group().scenario
    assert candidates_of(one_host, "step_walls_only") == ("kernel_regression",)
    assert candidates_of(one_host, "nothing") == ()
    assert len(candidates_of(one_host, "all_but_progress")) > 20


def test_missing_are_tables_and_columns_that_hold_nothing() -> None:
    steps = pd.DataFrame({"rank": [0], "duration_ns": [1]})
    empty = steps.assign(duration_ns=pd.NA)
    whole = RunData({"steps": steps, "logs": steps}, {0: b""})
    assert missing(whole, RunData({"steps": empty}, {})) == (
        "logs",
        "trace_events",
        "steps.duration_ns",
    )
    assert missing(whole, whole) == ()
