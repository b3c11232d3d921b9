"""Every confounder misleads an average, and does so in the tables that are shipped."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cases.taxonomy import Taxonomy
from injectors.fleet.confounders import CONFOUNDERS
from injectors.fleet.settings import read_matrix

ALIKE = ["model", "config", "gpu_model", "ranks", "input_size"]
VERSIONS = ["driver", "nccl", "framework", "image", "storage"]


def mean_of(jobs: pd.DataFrame, column: str = "step_ns") -> float:
    return float(jobs[column].astype(float).mean())


def by_kind(jobs: pd.DataFrame, before: pd.DataFrame, least: int = 12) -> pd.Series:
    """Mean step of each kind of job over that of the same kind before."""
    now, then = (
        frame.assign(step=frame["step_ns"].astype(float)).groupby(ALIKE)["step"]
        for frame in (jobs, before)
    )
    ratio = (now.mean() / then.mean())[(now.count() >= least) & (then.count() >= least)]
    return ratio.dropna()


def arms_with(name: str, faulty: bool) -> list[tuple[str, str]]:
    return [
        (group.name, arm.name)
        for group in read_matrix()
        for arm in group.arms
        if name in arm.confounders and bool(arm.fault) == faulty
    ]


def test_each_confounder_is_in_healthy_and_in_faulty_cases() -> None:
    for name in CONFOUNDERS:
        assert len(arms_with(name, faulty=False)) >= 2, name
        assert len(arms_with(name, faulty=True)) >= 3, name


def test_confounders_look_like_causes_of_the_taxonomy() -> None:
    known = set(Taxonomy.load().causes)
    assert all(known.issuperset(confounder.looks_like) for confounder in CONFOUNDERS.values())


@pytest.mark.parametrize(("group", "arm"), arms_with("job_mix_shift", faulty=False))
def test_a_mix_shift_reverses_the_aggregate(tables_of, group: str, arm: str) -> None:
    jobs, before = tables_of(group, arm)
    assert mean_of(jobs) > 1.15 * mean_of(before)
    kinds = by_kind(jobs, before)
    assert len(kinds) >= 6
    assert (kinds < 1).all()


@pytest.mark.parametrize(("group", "arm"), arms_with("traffic_mix", faulty=False))
def test_a_faster_version_that_attracts_heavy_jobs_looks_worse(
    case_of, tables_of, group: str, arm: str
) -> None:
    jobs, before = tables_of(group, arm)
    column = case_of(group, arm).truth.recipe["arm"]["attracts"]
    new = ~jobs[column].isin(set(before[column]))
    assert mean_of(jobs[new]) > 1.4 * mean_of(jobs[~new])
    alike = by_kind(jobs[new], jobs[~new], least=10)
    assert len(alike) >= 1
    assert (alike < 1).all()


@pytest.mark.parametrize(("group", "arm"), arms_with("survivor_bias", faulty=False))
def test_slow_jobs_that_used_to_be_killed_make_the_survivors_look_slower(
    tables_of, group: str, arm: str
) -> None:
    jobs, before = tables_of(group, arm)
    assert (before["state"] == "killed").mean() > 0.2 > (jobs["state"] == "killed").mean()
    assert mean_of(jobs) > 1.15 * mean_of(before)
    everybody = [float((frame["duration_ns"] / frame["steps"]).mean()) for frame in (jobs, before)]
    assert everybody[0] == pytest.approx(everybody[1], rel=0.06)
    assert by_kind(jobs, before).between(0.97, 1.03).all()


@pytest.mark.parametrize(("group", "arm"), arms_with("killed_jobs", faulty=True))
def test_jobs_that_a_fault_slows_vanish_from_what_is_reported(
    case_of, tables_of, group: str, arm: str
) -> None:
    jobs, _ = tables_of(group, arm)
    fault = case_of(group, arm).truth.faults[0]
    inside = np.logical_and.reduce(
        [jobs[column].astype(str) == value for column, value in fault.locus.segment.items()]
    )
    lost = (jobs["state"] == "killed") & inside
    assert lost.sum() > 0.9 * (jobs["state"] == "killed").sum()
    if fault.lost_fraction.value > 0.1:  # those who ask for most time outlast a mild fault
        assert lost.sum() > 0.15 * inside.sum()


@pytest.mark.parametrize(("group", "arm"), arms_with("killed_jobs", faulty=False))
def test_tight_requests_kill_nobody_in_a_healthy_fleet(tables_of, group: str, arm: str) -> None:
    jobs, _ = tables_of(group, arm)
    assert (jobs["state"] == "killed").mean() < 0.01
    assert float((jobs["requested_ns"] / jobs["duration_ns"]).median()) < 1.5


@pytest.mark.parametrize(("group", "arm"), arms_with("diurnal_temperature", faulty=False))
def test_a_warm_period_is_hotter_and_hardly_slower(
    case_of, tables_of, group: str, arm: str
) -> None:
    jobs, before = tables_of(group, arm)
    assert mean_of(jobs, "temperature_c") > mean_of(before, "temperature_c") + 2
    assert by_kind(jobs, before).mean() == pytest.approx(1.008, abs=0.012)
    validation = case_of(group, arm).truth.validation
    assert validation.injections == ("thermal_throttle",)
    assert 1 <= validation.ratio.value < 1.02


def test_temperature_follows_the_hour(tables_of) -> None:
    jobs, _ = tables_of("rooms-a", "plain")
    hour = (jobs["start_ns"] + jobs["duration_ns"] // 2) // 3_600_000_000_000 % 24
    by_hour = jobs["temperature_c"].astype(float).groupby(hour).mean()
    assert by_hour.loc[14:17].mean() > by_hour.loc[2:5].mean() + 3
    clock = jobs["sm_clock_mhz"].astype(float).groupby(hour).mean()
    assert 1.005 < clock.loc[2:5].mean() / clock.loc[14:17].mean() < 1.03


@pytest.mark.parametrize(
    ("group", "arm"), [a for a in arms_with("machine_scatter", False) if a[0] != "rooms-b"]
)
def test_machines_scatter_as_widely_in_both_periods(tables_of, group: str, arm: str) -> None:
    means = [
        f.groupby("machine")["sm_clock_mhz"].mean().astype(float) for f in tables_of(group, arm)
    ]
    for mean in means:
        assert 0.08 < mean.max() / mean.min() - 1 < 0.35
    assert (means[0] / means[1]).between(0.96, 1.04).all()


@pytest.mark.parametrize(("group", "arm"), arms_with("two_mode_shift", faulty=False))
def test_more_long_inputs_slow_every_configuration_and_no_size(
    tables_of, group: str, arm: str
) -> None:
    jobs, before = tables_of(group, arm)
    steps = [f.assign(step=f["step_ns"].astype(float)) for f in (jobs, before)]
    means = [frame.groupby(["model", "config"])["step"].mean() for frame in steps]
    assert (means[0] / means[1]).median() > 1.08
    assert by_kind(jobs, before).between(0.97, 1.03).all()


@pytest.mark.parametrize(
    ("group", "arm"),
    [a for a in arms_with("traffic_mix", faulty=True) if not a[0].startswith(("data", "loader"))],
)
def test_the_plainest_average_blames_another_version(
    case_of, tables_of, group: str, arm: str
) -> None:
    jobs, _ = tables_of(group, arm)
    step = jobs["step_ns"].astype(float)
    segment = case_of(group, arm).truth.faults[0].locus.segment
    contrasts = {
        (column, value): step[jobs[column] == value].mean() / step[jobs[column] != value].mean()
        for column in VERSIONS
        for value in jobs[column].unique()
    }
    column, value = max(contrasts, key=lambda key: contrasts[key])
    assert segment.get(column) != value
