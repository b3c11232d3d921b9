"""Parts of a step, worked out by hand for jobs without noise."""

from __future__ import annotations

import numpy as np
import pytest

from injectors.fleet import devices, transfers
from injectors.fleet.conditions import Conditions
from injectors.fleet.period import Periods
from injectors.fleet.steps import run
from injectors.fleet.traffic import Traffic
from injectors.sim.noise import ONE_Q16

USUAL = Traffic(long_percent=35)


@pytest.fixture
def world(periods: Periods):
    return periods.get(USUAL, later=True).world


@pytest.fixture
def quiet(world, monkeypatch) -> Conditions:
    """The jobs without their noise."""
    none = np.full(len(world.jobs.keys), ONE_Q16, dtype=np.int64)
    monkeypatch.setattr(Conditions, "noise_q16", lambda self, name: none)
    monkeypatch.setattr(Conditions, "loader_noise_q16", lambda self, name: none)
    return Conditions(world)


def pick(world, **wanted: object) -> int:
    """The first job with the given attributes."""
    columns = {**world.columns, "long": world.jobs.long}
    inside = np.logical_and.reduce([columns[name] == value for name, value in wanted.items()])
    return int(np.flatnonzero(inside)[0])


def test_compute(world, quiet: Conditions) -> None:
    job = pick(world, model="vit-l", config="base", gpu_model="A100-PCIE-40GB", long=0, ranks=1)
    assert world.batch[job] == 53  # 32 * 40 / 24
    # 53 * 185 GFLOP at 42 % of 312 TFLOP/s; 53 * 0.7 GB at 1555 GB/s.
    assert devices.product_ns(quiet)[job] == pytest.approx(53 * 185e9 / (0.42 * 312e12) * 1e9)
    half = np.full(len(world.seat_job), ONE_Q16 // 2)
    expected = 2 * 53 * 185e9 / (0.42 * 312e12) * 1e9 + 53 * 0.7e9 / 1555e9 * 1e9
    seat = int(quiet.first_seats[job])
    assert devices.compute_ns(quiet, half)[seat] == pytest.approx(expected, rel=1e-6)


def test_long_inputs_take_their_work(world, quiet: Conditions) -> None:
    short, long = (
        pick(world, model="vit-l", config="base", gpu_model="L40S", long=n, ranks=1) for n in (0, 1)
    )
    product = devices.product_ns(quiet)
    assert product[long] / product[short] == pytest.approx(573 / 185)


def test_communication(world, quiet: Conditions) -> None:
    job = pick(world, model="gpt-350m", ranks=4, gpu_model="L40S")
    moved, exposed = transfers.communication(quiet, np.full(len(world.jobs.keys), 16))
    # Ring: 2 * 3/4 of 355 M gradients of 2 bytes, at 80 % of 24 GB/s, half of it hidden.
    assert moved[job] == 1_065_000_000
    assert exposed[job] == pytest.approx(1_065_000_000 / (0.8 * 24) / 2, rel=1e-6)
    assert exposed[pick(world, ranks=1)] == 0


def test_copies(world, quiet: Conditions) -> None:
    job = pick(world, model="gpt-350m", config="offload", gpu_model="L40S")
    _, lasted = transfers.copies(quiet, np.full(len(world.jobs.keys), 16))
    # Gradients out and weights in, 710 MB each, and 8 samples of 12 kB.
    assert lasted[job] == pytest.approx((2 * 710e6 + 8 * 12e3) / 24, rel=1e-4)


def test_loading(world, quiet: Conditions) -> None:
    job = pick(world, model="resnet-50", config="base", gpu_model="L40S", long=0)
    read, decode = transfers.loading(quiet)
    assert world.batch[job] == 256
    assert read[job] == 256 * 110_000_000 // 220  # 110 kB at 220 MB/s
    assert decode[job] == 256 * 2_200_000


def test_a_job_goes_with_its_slowest_rank(world) -> None:
    steps, on = run(world), Conditions(world)
    clock = devices.clocks(on)[0].clock_q16
    for job in np.flatnonzero(world.jobs.ranks == 4)[:20].tolist():
        seats = on.first_seats[job] + np.arange(4)
        assert steps.clocks.clock_q16[job] == clock[seats].min()


def test_waiting_for_data_is_what_the_loader_lacks(world, quiet: Conditions) -> None:
    steps = run(world)
    supply = (steps.read_ns + steps.decode_ns) // world.of_card("workers")
    busy = steps.compute_ns + steps.communication_ns + steps.copy_ns
    late = supply > busy
    waited = steps.data_wait_ns - np.maximum(supply - busy, 0)
    assert (waited >= 0).all()
    assert (waited <= supply // 11).all()  # 8.4 times 1 % at most
    assert late.mean() < 0.1


def test_noise_is_as_documented(world) -> None:
    again = Conditions(world)
    computing = again.noise_q16("compute") / ONE_Q16
    assert computing.std() == pytest.approx(0.0092, abs=0.0008)
    communicating = again.noise_q16("communication") / ONE_Q16
    assert np.corrcoef(computing, communicating)[0, 1] > 0.9
