import numpy as np
import pandas as pd
import pytest

from injectors.sim.clocks import clocks
from injectors.sim.job import ONE, Places
from injectors.sim.tables.device_traffic import nvlink_share_q16, pcie_bytes
from injectors.sim.tables.gpu import gpu_table
from injectors.sim.tables.power import read_power_mw
from injectors.sim.tables.sampling import samples
from injectors.sim.tables.traffic import traffic

MS = 10**6


def table(run) -> pd.DataFrame:
    found = samples(run.job, clocks(run.job), 300 * MS)
    return gpu_table(run, found, traffic(run))


def test_utilisation_counts_kernels_that_spin(made):
    # 60 ms of kernels; of 40 ms of communication what the loader's 4 ms leave is its own.
    found = table(made()).groupby("rank").last()
    assert set(found["utilization_percent"]) <= {95, 96}
    assert set(found["memory_utilization_percent"]) <= {19, 20}


def test_temperature_is_in_whole_degrees_and_reasons_are_bits(made):
    found = table(made())
    assert set(found["temperature_c"]) == {61}
    assert set(found["event_reasons"]) == {4}
    assert set(found["sm_clock_mhz"]) == {1980}


def test_power_is_a_mean_of_earlier_milliseconds(made):
    run = made()
    run.taken -= 5 * MS  # nothing is waited for
    for state, mw in zip(run.devices, (200_000, 200_000, 600_000), strict=True):
        state.power_mw[:] = mw
    times = np.tile(np.arange(100, 300, 2) * MS, (2, 1))
    found = read_power_mw(run, times)
    # The third step begins at 200 ms; what is read until then cannot know of it.
    assert found[:, times[0] <= 200 * MS] == pytest.approx(200_000, rel=0.04)
    assert (found[:, -1] > 250_000).all()
    changes = np.abs(np.diff(found // 1000)) > 25  # the sensor's own noise is less
    assert changes.sum(axis=1).tolist() == [1, 1]


def test_a_device_that_waits_for_its_batch_draws_little(made):
    run = made()
    run.taken += 85 * MS  # 90 of 100 ms
    times = np.tile(np.arange(200, 300) * MS, (2, 1))
    found = read_power_mw(run, times)
    # In 10 ms it draws 1.3 times the limit; 25 ms of which it is the end are averaged.
    assert found.min() == pytest.approx(75_000, rel=0.05)
    assert found.max() == pytest.approx((10 * 910_000 + 15 * 75_000) / 25, rel=0.05)


def test_a_link_without_work_falls_back_to_its_first_generation(made):
    run = made()
    assert set(table(run)["pcie_generation"]) == {5}
    for state in run.devices:
        state.kernels_ns[1] = state.communication_ns[1] = 0
    found = table(run)
    assert set(found.loc[found["rank"] == 1, "pcie_generation"]) == {1}
    assert set(found.loc[found["rank"] == 0, "pcie_generation"]) == {5}


def test_a_downgraded_link_says_so_under_load(made, job):
    job.gpus.pcie_generation[1], job.gpus.pcie_width[1] = 3, 8
    found = table(made(job)).groupby("rank")[["pcie_generation", "pcie_width"]].max()
    assert found.to_numpy().tolist() == [[5, 16], [3, 8]]


def test_neighbours_are_processes_with_memory(made, job):
    before = table(made())
    job.gpus.neighbours[0] = 2
    found = table(made(job))
    more = found["processes"] - before["processes"]
    assert more[found["rank"] == 0].tolist() == [2] * (found["rank"] == 0).sum()
    assert not more[found["rank"] == 1].any()
    used = found["memory_used_bytes"] - before["memory_used_bytes"]
    assert (used[found["rank"] == 0] == 10 * 2**30).all()


def test_two_ranks_on_one_device_leave_the_other_empty(made, job):
    job.gpus.device_of[1] = 0
    found = table(made(job)).groupby("rank")["processes"].min()
    assert found.tolist() == [2, 0]


def test_a_limit_that_was_lowered_is_told(made, job):
    job.gpus.power_limit_w[1] = 300
    found = table(made(job)).groupby("rank")["power_limit_w"].first()
    assert found.tolist() == [700.0, 300.0]


def test_interfaces_and_copies_cross_pcie(made):
    run = made()
    sent, received = pcie_bytes(run, traffic(run))
    assert sent[0].tolist() == [8_000_000] * 2
    assert received[0].tolist() == [9_000_000] * 2  # and a batch of 1 MB


def test_memory_that_spilled_is_read_over_pcie(made, job):
    run = made(job)
    run.program.ops[2] = run.program.ops[2].__class__(
        **{**run.program.ops[2].__dict__, "memory_ns": MS}
    )
    job.gpus.spill_q16 = ONE // 4
    sent, _ = pcie_bytes(run, traffic(run))
    # 1 ms at 0.85 of 3.35 TB/s, a quarter of it, half of that each way.
    assert sent[0, 0] - 8_000_000 == pytest.approx(0.85 * 3.35e9 / 8, rel=0.001)


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        ({}, [1, 1, 1, 1]),
        ({"peer_access": False}, [0, 0, 0, 0]),
        ({"nvlink_q16": {1: 0}}, [2 / 3, 0, 2 / 3, 2 / 3]),
        ({"nvlink_q16": {1: ONE // 2}}, [1, 1, 1, 1]),
    ],
)
def test_what_takes_nvlink(make_job, settings, shares):
    job = make_job(places=Places(ranks=4, per_host=4, data=4))
    for name, value in settings.items():
        setattr(job.network, name, value)
    assert nvlink_share_q16(job).tolist() == [int(ONE * share) for share in shares]
