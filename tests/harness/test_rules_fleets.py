"""What rules say of fleets: hand-made ones that isolate a trap each, and a built group."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cases.case import Case, Recording
from cases.schema import Diagnosis
from cases.tables import TABLES, to_arrow
from cases.taxonomy import Taxonomy
from harness.diagnosers.rules.fleets import diagnose_fleet
from harness.diagnosers.rules.fleets.causes import CAUSES, COLUMNS
from harness.diagnosers.rules.fleets.queries import DIFFERENCES, RATIOS
from harness.diagnosers.rules.fleets.search import CHANGES
from harness.diagnosers.rules.queries import number
from injectors.fleet.suite import groups

JOBS = 400
PARTS = {"compute_ns": 80e6, "communication_ns": 10e6, "copy_ns": 9e6, "data_wait_ns": 1e6}


class Kept(Recording):
    """A recording of jobs that was never written."""

    def __init__(self, jobs: pd.DataFrame) -> None:
        self._jobs = to_arrow("jobs", jobs)

    def arrow(self, name: str) -> pa.Table:
        return self._jobs if name == "jobs" else TABLES[name].schema.empty_table()


class MadeFleet(Kept, Case):
    """A fleet's two periods as a case."""

    def __init__(self, jobs: pd.DataFrame, past: pd.DataFrame) -> None:
        super().__init__(jobs)
        self.reference = Kept(past)


def fleet_of(seed: int, jobs: int = JOBS) -> pd.DataFrame:
    """Jobs on eight machines; every column is drawn by itself, a wide model's steps are longer."""
    rng = np.random.default_rng(seed)

    def draw(*names: str) -> np.ndarray:
        return rng.choice(names, jobs)

    frame = pd.DataFrame({"job": np.arange(jobs), "start_ns": np.arange(jobs)})
    for column, names in {
        "machine": [f"node{i}" for i in range(8)],
        **{name: ["a", "b", "c"] for name in CHANGES},
        "config": ["base", "wide"],
        "model": ["small", "large"],
    }.items():
        frame[column] = draw(*names)
    frame = frame.assign(gpu_model="L40S", ranks=4, batch_size=8, input_size=512, state="completed")
    size = np.where(frame["model"] == "large", 3, 1) * np.where(frame["config"] == "wide", 1.5, 1)
    noise = rng.normal(1, 0.01, jobs) * size
    frame = frame.assign(**{name: noise * ns for name, ns in PARTS.items()})
    return frame.assign(
        loader_read_ns=20e6 * noise,
        loader_cpu_ns=90e6 * noise,
        recompiles=0,
        tensor_active_percent=40.0,
        sm_clock_mhz=2000,
        temperature_c=60,
        power_w=300.0,
        power_limit_w=350.0,
        event_reasons=4,
        pcie_width=16,
        pcie_rx_bytes_per_s=10**8,
        memory_used_bytes=2 * 10**10,
        memory_total_bytes=4 * 10**10,
    )


def answer(jobs: pd.DataFrame, blank: tuple[str, ...] = ()) -> Diagnosis:
    return diagnose_fleet(case_of(jobs, blank))


def case_of(jobs: pd.DataFrame, blank: tuple[str, ...] = ()) -> MadeFleet:
    """The case, with steps summed up; tensor cores have the work that they had."""
    return MadeFleet(ended(jobs, blank), ended(fleet_of(1), blank))


def ended(jobs: pd.DataFrame, blank: tuple[str, ...]) -> pd.DataFrame:
    step = jobs[list(PARTS)].sum(axis=1)
    usual = step - jobs.get("lost_ns", 0)
    jobs = jobs.assign(step_ns=step, tensor_active_percent=40.0 * usual / step)
    jobs = jobs.assign(
        duration_ns=step * 1000, steps=1000, requested_ns=10**13, throughput=8e9 / step
    )
    killed = jobs["state"] == "killed"
    reported = [*PARTS, "step_ns", "throughput", "recompiles", "tensor_active_percent"]
    whole = [*(n for n in PARTS), "step_ns", "duration_ns", "loader_read_ns", "loader_cpu_ns"]
    jobs = jobs.assign(**{name: jobs[name].round().astype("Int64") for name in whole})
    jobs[reported] = jobs[reported].mask(killed)
    jobs = jobs.assign(**dict.fromkeys(blank, None))
    return jobs.drop(columns="lost_ns", errors="ignore")


def slowed(jobs: pd.DataFrame, where: pd.Series, part: str, times: float) -> pd.DataFrame:
    longer = jobs[part].where(~where, jobs[part] * times)
    return jobs.assign(**{part: longer, "lost_ns": longer - jobs[part]})


def blamed(diagnosis: Diagnosis) -> tuple[str, dict[str, str]]:
    (finding,) = diagnosis.findings
    assert finding.locus is not None
    return finding.cause, finding.locus.segment


def test_causes_are_known_and_what_is_cited_has_a_query() -> None:
    causes = set(Taxonomy.load().causes)
    for cause in CAUSES:
        assert {cause.name, *(name for name, _ in cause.rivals)} <= causes
        assert set(cause.cites) <= set(RATIOS) | set(DIFFERENCES)
        assert {sign.fact for sign in cause.signs} <= set(COLUMNS)


def test_fleet_that_is_as_before_is_healthy() -> None:
    assert {answer(fleet_of(seed)).verdict for seed in range(2, 12)} == {"healthy"}


def test_mix_that_moves_to_heavy_jobs_on_a_new_version_is_healthy() -> None:
    """The new framework's jobs take twice as long on average, each as long as its like."""
    jobs = fleet_of(2, 4 * JOBS)
    heavy = (jobs["model"] == "large") | (jobs["framework"] != "c")
    light = (jobs["model"] == "small") | (jobs["framework"] == "c")
    assert answer(jobs[heavy & light]).verdict == "healthy"


def test_loss_below_the_threshold_is_healthy() -> None:
    jobs = fleet_of(2)
    assert answer(slowed(jobs, jobs["driver"] == "a", "compute_ns", 1.025)).verdict == "healthy"


def test_version_is_found_with_evidence_that_holds() -> None:
    jobs = fleet_of(2)
    case = case_of(slowed(jobs, jobs["driver"] == "b", "compute_ns", 1.2))
    diagnosis = diagnose_fleet(case)
    assert blamed(diagnosis) == ("kernel_regression", {"driver": "b"})
    (finding,) = diagnosis.findings
    assert finding.lost_fraction == pytest.approx(0.16 / 1.16, abs=0.005)
    assert len(finding.evidence) == 2
    for evidence in finding.evidence:
        assert number(case, evidence.sql) == pytest.approx(evidence.value)


def test_interaction_is_found_and_not_the_version_alone() -> None:
    jobs = fleet_of(2)
    where = (jobs["driver"] == "b") & (jobs["config"] == "wide")
    found = blamed(answer(slowed(jobs, where, "compute_ns", 1.3)))
    assert found == ("kernel_regression", {"driver": "b", "config": "wide"})


def test_slow_jobs_that_were_killed_count() -> None:
    """What reported lost 3 %, below the threshold; those that lost most reported nothing."""
    jobs = fleet_of(2)
    where = jobs["nccl"] == "c"
    killed = where & (jobs.index % 4 > 0)
    slow = slowed(jobs, where, "communication_ns", 1.3)
    assert answer(slow).verdict == "healthy"
    slow = slowed(slow, killed, "communication_ns", 3)
    slow.loc[killed, "state"] = "killed"
    diagnosis = answer(slow)
    assert blamed(diagnosis) == ("nccl_tuning_regression", {"nccl": "c"})
    assert diagnosis.findings[0].lost_fraction == pytest.approx(0.18, abs=0.02)


def test_versions_that_came_together_are_told_by_the_part_that_grew_or_not_at_all() -> None:
    jobs = fleet_of(2)
    jobs["nccl"] = jobs["framework"]
    slow = slowed(jobs, jobs["nccl"] == "c", "communication_ns", 2.5)
    assert blamed(answer(slow)) == ("nccl_tuning_regression", {"nccl": "c"})
    blank = ("compute_ns", "communication_ns", "tensor_active_percent", "power_w")
    diagnosis = answer(slow, blank)
    assert diagnosis.verdict == "abstain"
    assert set(diagnosis.candidates) == {"kernel_regression", "nccl_tuning_regression"}
    assert {"jobs.compute_ns", "jobs.communication_ns"} <= set(diagnosis.missing_signals)


def test_versions_that_came_apart_are_told_without_the_parts() -> None:
    jobs = fleet_of(2)
    slow = slowed(jobs, jobs["nccl"] == "c", "communication_ns", 2.5)
    found = blamed(answer(slow, ("compute_ns", "communication_ns", "tensor_active_percent")))
    assert found == ("nccl_tuning_regression", {"nccl": "c"})


def test_two_versions_in_the_same_jobs_give_a_cause_and_no_place() -> None:
    jobs = fleet_of(2)
    jobs["driver"] = jobs["framework"]
    diagnosis = answer(slowed(jobs, jobs["driver"] == "c", "compute_ns", 1.2))
    (finding,) = diagnosis.findings
    assert finding.cause == "kernel_regression" and finding.locus is None


def test_machine_that_was_always_slow_is_no_change() -> None:
    now, past = fleet_of(2), fleet_of(1)
    slow = [slowed(j, j["machine"] == "node3", "compute_ns", 1.15) for j in (now, past)]
    case = MadeFleet(ended(slow[0], ()), ended(slow[1], ()))
    assert diagnose_fleet(case).verdict == "healthy"


@pytest.mark.parametrize("blank", ["steps", "duration_ns"])
def test_where_nobody_knows_how_long_steps_take_it_abstains(blank: str) -> None:
    said = answer(fleet_of(2), (blank,))
    assert said.verdict == "abstain"
    assert said.missing_signals == ("jobs.duration_ns", "jobs.steps")


@pytest.mark.parametrize("empty", ["now", "past"])
def test_without_jobs_of_both_periods_it_abstains(empty: str) -> None:
    jobs = {period: ended(fleet_of(1), ()) for period in ("now", "past")}
    jobs[empty] = jobs[empty].iloc[:0]
    assert diagnose_fleet(MadeFleet(jobs["now"], jobs["past"])).verdict == "abstain"


def test_without_an_earlier_period_it_abstains() -> None:
    case = case_of(fleet_of(2))
    case.reference = None
    assert diagnose_fleet(case).verdict == "abstain"


@lru_cache
def built(name: str) -> tuple:
    return next(group for group in groups() if group.name == name).make().cases


@pytest.mark.parametrize("name", ["limits-b", "chips-d"])
def test_built_groups_are_answered(name: str) -> None:
    for made in built(name):
        assert made.reference is not None
        case = MadeFleet(made.tables["jobs"], made.reference.tables["jobs"])
        diagnosis, truth = diagnose_fleet(case), made.truth
        if truth.verdict == "undecidable":
            assert diagnosis.verdict == "abstain"
            assert set(truth.candidates) <= set(diagnosis.candidates)
            assert set(truth.missing_signals) == set(diagnosis.missing_signals)
        else:
            assert diagnosis.verdict == truth.verdict
            said = [(f.cause, f.locus and f.locus.segment) for f in diagnosis.findings]
            assert said == [(f.cause, f.locus.segment) for f in truth.faults]
