"""Undecidable groups: what is left of the table is the same whichever of the causes is there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cases.tables import TABLES
from injectors.fleet.parameters import Edit
from injectors.fleet.period import Period, Periods
from injectors.fleet.settings import FleetGroup, read_matrix
from injectors.fleet.steps import run
from injectors.fleet.table import jobs_table
from injectors.fleet.traffic import Traffic
from injectors.fleet.withheld import WITHHELD

NUMBERS = [c for c, (kind, _) in TABLES["jobs"].columns.items() if kind != "text"]


def left_of(period: Period, withheld: str, edit: Edit) -> pd.DataFrame:
    frame = jobs_table(period, run(period.world, [edit]), WITHHELD[withheld].columns)
    return frame[NUMBERS].astype(float)


def assert_alike(first: pd.DataFrame, second: pd.DataFrame, tolerance: float) -> None:
    assert (first.isna() == second.isna()).all(axis=None)
    apart = (first - second).abs() / np.maximum(second.abs(), 1)
    assert apart.max(axis=None) < tolerance, apart.max().nlargest(3)


def groups_of(withheld: str) -> list[FleetGroup]:
    return [group for group in read_matrix() if group.withheld == withheld]


def period_of(group: FleetGroup) -> Period:
    return Periods(group, 11).get(Traffic(long_percent=group.long_percent), later=True)


@pytest.mark.parametrize("group", groups_of("clock_limits"), ids=lambda g: g.name)
def test_a_lower_limit_and_a_hungrier_chip_give_the_same_clocks(group: FleetGroup) -> None:
    period = period_of(group)
    fleet = period.world.fleet
    gpu = int(fleet.replaced[0])
    where = {"gpu_serial": str(fleet.serials(later=True)[gpu])}
    card = fleet.cards[fleet.gpu_machine[gpu]]
    limit_w = card.power_limit_w * 6 // 10
    hungrier = 1000 * (card.power_limit_w - card.idle_w) / (limit_w - card.idle_w)
    assert_alike(
        left_of(period, "clock_limits", Edit("power_limit", where, 600)),
        left_of(period, "clock_limits", Edit("silicon_power", where, round(hungrier))),
        0.01,
    )


@pytest.mark.parametrize("group", groups_of("tensor_use"), ids=lambda g: g.name)
def test_slow_kernels_and_plain_cores_take_equally_long(group: FleetGroup) -> None:
    period = period_of(group)
    new = period.world.fleet.versions["framework"][2]
    where = {"framework": new, "config": "float32"}
    # A fifth of the products at four times their length: 1.6 of it in all.
    assert_alike(
        left_of(period, "tensor_use", Edit("tensor_kept", where, 800)),
        left_of(period, "tensor_use", Edit("compute_efficiency", where, 625)),
        0.01,
    )


@pytest.mark.parametrize("group", groups_of("loader_split"), ids=lambda g: g.name)
def test_slow_reads_and_slow_decoding_hold_a_model_up_alike(group: FleetGroup) -> None:
    alone = group.model_copy(update={"models": group.models[:1]})
    period = period_of(alone)
    versions, steps = period.world.fleet.versions, run(period.world)
    ratio = np.mean(steps.read_ns / steps.decode_ns)  # the same for all jobs of the model
    pool, image = ({c: versions[c][2]} for c in ("storage", "image"))
    first = left_of(period, "loader_split", Edit("storage_bandwidth", pool, 100))
    longer = 1 + 9 * ratio  # by which all of it grows where reads take ten times as long
    second = left_of(period, "loader_split", Edit("decode_time", image, round(1000 * longer)))
    done = first["step_ns"].notna() & second["step_ns"].notna()
    waits = [f["data_wait_ns"][done] / f["step_ns"][done] for f in (first, second)]
    assert all((wait > 0.1).mean() > 0.2 for wait in waits)
    # Jobs differ by the 0.5 % by which reading and decoding vary each by itself.
    steps_apart = first["step_ns"][done] / second["step_ns"][done] - 1
    assert steps_apart.abs().max() < 0.04
    assert abs(steps_apart.mean()) < 0.003
    assert waits[0].std() == pytest.approx(waits[1].std(), rel=0.02)


@pytest.mark.parametrize("group", groups_of("phases"), ids=lambda g: g.name)
def test_nothing_but_lengths_could_tell_computing_from_communicating(group: FleetGroup) -> None:
    world = period_of(group).world
    steps = run(world)
    new = {c: world.columns[c] == world.fleet.versions[c][2] for c in group.together}
    assert (new["framework"] == new["nccl"]).all()
    assert set(world.jobs.ranks) == {4}  # no job without communication, nor with less
    assert set(world.jobs.long) == {0}
    assert len(group.cards) == len(group.configs) == 1  # a model has one batch on one card
    assert (steps.clocks.clock_q16 == 65536).all()  # nor does any chip compute slower


def test_withheld_columns_exist_and_candidates_are_two() -> None:
    for withheld in WITHHELD.values():
        assert set(withheld.columns) <= set(TABLES["jobs"].columns)
        assert len(withheld.candidates) in (0, 2)
