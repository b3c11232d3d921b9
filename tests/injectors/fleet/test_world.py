"""Who comes, when, and where they run."""

from __future__ import annotations

import numpy as np
import pytest

from injectors.fleet.catalogue import CARDS
from injectors.fleet.fleet import DAY_NS, REPLACED, Fleet
from injectors.fleet.period import Periods
from injectors.fleet.settings import FleetGroup
from injectors.fleet.traffic import Traffic, heavy_pairs

USUAL = Traffic(long_percent=35)


def test_no_two_jobs_hold_a_gpu_at_once(periods: Periods) -> None:
    world = periods.get(USUAL, later=True).world
    held: dict[int, int] = {}
    for job, gpu in zip(world.seat_job.tolist(), world.seat_gpu.tolist(), strict=True):
        assert held.get(gpu, 0) <= world.start_ns[job]
        held[gpu] = int(world.start_ns[job] + world.requested_ns[job])


def test_a_job_runs_on_one_machine(periods: Periods) -> None:
    world = periods.get(USUAL, later=True).world
    assert (world.seat_gpu // 4 == world.machine[world.seat_job]).all()
    assert np.bincount(world.seat_job).tolist() == world.jobs.ranks.tolist()


def test_jobs_come_in_order_within_the_period(periods: Periods, settings: FleetGroup) -> None:
    asked_ns = periods.get(USUAL, later=True).world.jobs.asked_ns
    assert (np.diff(asked_ns) >= 0).all()
    assert 0 <= asked_ns.min() <= asked_ns.max() < settings.days * DAY_NS


def test_few_jobs_have_to_wait_for_a_gpu(periods: Periods) -> None:
    world = periods.get(USUAL, later=True).world
    waited = world.start_ns - world.jobs.asked_ns
    assert waited.min() == 0
    assert (waited > 0).mean() < 0.1


@pytest.mark.parametrize("column", ["driver", "nccl", "framework", "image", "storage"])
def test_new_versions_come_by_and_by(periods: Periods, column) -> None:
    worlds = [periods.get(USUAL, later).world for later in (False, True)]
    *old, new = worlds[0].fleet.versions[column]
    assert set(worlds[0].columns[column]) == set(old)
    assert set(worlds[1].columns[column]) == {*old, new}
    has = worlds[1].columns[column] == new
    third = len(has) // 3
    assert has[: third // 2].mean() < 0.4 < has[-third:].mean() < 0.9


def test_versions_of_different_columns_come_independently(periods: Periods) -> None:
    world = periods.get(USUAL, later=True).world
    late = slice(len(world.machine) // 2, None)
    framework, nccl = (
        world.columns[c][late] == world.fleet.versions[c][2] for c in ("framework", "nccl")
    )
    assert abs(np.corrcoef(framework, nccl)[0, 1]) < 0.15


def test_columns_that_come_together_are_never_apart(settings: FleetGroup) -> None:
    group = settings.model_copy(update={"together": ("framework", "nccl")})
    world = Periods(group, 3).get(USUAL, later=True).world
    framework, nccl = (world.columns[c] == world.fleet.versions[c][2] for c in group.together)
    assert (framework == nccl).all()
    assert 0.2 < framework.mean() < 0.8


def test_a_few_gpus_were_exchanged(settings: FleetGroup) -> None:
    fleet = Fleet(settings, 3)
    before, after = fleet.serials(later=False), fleet.serials(later=True)
    assert len(set(before)) == len(before) == 32
    assert np.flatnonzero(before != after).tolist() == fleet.replaced.tolist()
    assert len(fleet.replaced) == REPLACED
    kept = before == after
    assert (fleet.silicon_q16(False)[kept] == fleet.silicon_q16(True)[kept]).all()


def test_every_card_of_the_group_is_there(settings: FleetGroup) -> None:
    assert {card.name for card in Fleet(settings, 3).cards} == {"A100-PCIE-40GB", "L40S"}


def test_chips_spread_as_documented(settings: FleetGroup) -> None:
    """8 % in clock between the best and the worst of 8: the range of 8 normals is 2.85 sigma."""
    group = settings.model_copy(update={"machines": 2000})
    clock = (Fleet(group, 3).silicon_q16(True) / 65536) ** -0.5
    eights = clock.reshape(-1, 8)
    assert (eights.max(axis=1) / eights.min(axis=1) - 1).mean() == pytest.approx(0.08, abs=0.01)
    assert clock.max() / clock.min() - 1 < 0.25


def test_the_heavier_half_of_the_work_is_heavy() -> None:
    # A step of vit-l works more than one of resnet-50, and a wide one half as much again.
    pairs = heavy_pairs(("vit-l", "resnet-50"), ("base", "wide"))
    assert pairs == {("vit-l", "base"), ("vit-l", "wide")}


def test_batches_fill_the_cards_memory(periods: Periods) -> None:
    world = periods.get(USUAL, later=True).world
    chosen = (world.jobs.texts["model"] == "vit-l") & (world.jobs.texts["config"] == "wide")
    for name in ("A100-PCIE-40GB", "L40S"):
        own = chosen & (world.columns["gpu_model"] == name)
        assert set(world.batch[own]) == {32 * CARDS[name].memory_gib * 150 // 2400}
