"""Hosts, processes and networks, from the hand-written run and from simulated ones."""

import numpy as np
import pandas as pd
import pytest

from injectors.sim.job import ONE
from injectors.sim.machine import MACHINES
from injectors.sim.tables.activity import activity
from injectors.sim.tables.foreign import Foreign, foreign
from injectors.sim.tables.host import host_table
from injectors.sim.tables.network import network_table
from injectors.sim.tables.processes import process_table
from injectors.sim.twin import Twin

MS = 10**6


def host(run) -> pd.DataFrame:
    done = activity(run)
    return host_table(run, done.samples, done)


def processes(run) -> pd.DataFrame:
    done = activity(run)
    return process_table(run, done.samples, done)


def network(run) -> pd.DataFrame:
    done = activity(run)
    return network_table(run, done.samples, done)


def rank_share(run, column: str) -> list[float]:
    """A counter of the ranks' processes over the time between their samples."""
    found = processes(run).query("role == 'rank'")
    done = activity(run)
    times = np.where(done.samples.taken, done.samples.true_ns, -1).max(axis=1)
    first = done.samples.true_ns[:, 0]
    return (found.groupby("rank")[column].sum() / (times - first)).tolist()


def test_a_thread_that_waits_for_its_gpu_uses_its_core(made):
    # 4 of 100 ms asleep for the batch; 2.5 % helpers; between hosts the proxy is busy for 40 ms
    # on rank 0, which comes first, and 30 on rank 1.
    shares = rank_share(made(), "cpu_ns")
    assert shares == pytest.approx([0.96 + 0.025 + 0.4, 0.96 + 0.025 + 0.3], abs=0.01)


def test_who_lost_a_core_waited_for_it(made, job):
    usual = rank_share(made(), "run_delay_ns")
    job.host.pinned_hogs = {1: 1}
    found = rank_share(made(job), "run_delay_ns")
    assert usual == pytest.approx([0.003, 0.003], abs=0.002)
    assert found[0] == usual[0] and found[1] == pytest.approx(0.48, abs=0.01)


def test_what_a_quota_holds_back_is_no_wait_for_a_core(made, job):
    usual = rank_share(made(), "run_delay_ns")
    job.host.quota_q16 = {0: ONE // 2}
    run = made(job)
    assert rank_share(run, "run_delay_ns")[0] <= usual[0]
    throttled = host(run).groupby("host")["cgroup_throttled_ns"].sum()
    assert throttled["host0"] > 80 * MS > throttled["host1"]


def test_hosts_count_no_more_than_they_have(made, job):
    job.host.hogs = {0: 1000}
    found = host(made(job))
    elapsed = found.groupby("host")["time_ns"].diff()
    there = elapsed.notna()
    whole = elapsed[there] * found["cores"][there]
    assert (found["cpu_busy_ns"][there] <= whole + 192_000).all()
    assert (found["psi_cpu_some_ns"][there] <= elapsed[there] + 1000).all()
    assert (found["cpu_busy_ns"] + found["cpu_iowait_ns"])[there].le(whole + 192_000).all()
    assert found.loc[found["host"] == "host0", "run_queue"].min() > 150
    assert found.loc[found["host"] == "host1", "run_queue"].max() < 10


def test_the_kernel_copies_for_sockets(made, job):
    usual = host(made())["cpu_system_ns"].sum()
    job.network.transport = "socket"
    more = host(made(job))["cpu_system_ns"].sum() - usual
    # 16 MB a step and rank at 350 ns a KiB, as far as samples reach.
    assert more == pytest.approx(2 * 2 * 16_000_000 / 1024 * 350, rel=0.6)


def test_reading_workers_are_pressure_and_disk_reads(made):
    found = host(made()).groupby("host")[["disk_read_bytes", "psi_io_some_ns"]].sum()
    assert (found > 0).all(axis=None)


def test_processes_have_numbers_of_their_own(made):
    found = processes(made())
    roles = found.groupby("process")[["role", "rank", "worker", "name", "host"]].nunique()
    assert (roles <= 1).all(axis=None)
    workers = found.query("role == 'loader_worker'")
    assert len(workers.groupby(["rank", "worker"])) == workers["process"].nunique() == 4
    assert workers["affinity"].unique().tolist() == [4]


def test_workers_that_are_started_again_are_other_processes(made, job):
    job.loader.epoch_steps, job.loader.respawn_ns = 1, 10 * MS
    found = processes(made(job)).query("role == 'loader_worker'")
    assert found["process"].nunique() > 4
    again = found.groupby("process")["time_ns"].min()
    assert again.is_monotonic_increasing or again.nunique() > 2
    job.loader.respawn_ns = 0
    assert processes(made(job)).query("role == 'loader_worker'")["process"].nunique() == 4


def test_ranks_that_share_a_core_may_use_one(made, job):
    job.host.shared_core = (1,)
    found = processes(made(job)).query("role == 'rank'").groupby("rank")["affinity"].first()
    assert found.tolist() == [192, 1]


def test_a_checkpoint_is_written_by_who_saves(made, job):
    job.checkpoint.every, job.checkpoint.bytes = 1, 10**8
    found = processes(made(job)).query("role == 'rank'").groupby("rank")["write_bytes"].sum()
    assert found[0] > 10**8 > 10**4 > found[1]


def test_foreign_processes_are_busy_in_turns():
    one = Foreign(0, "x", 0, 2, 3, 10, 8, ONE, 4, False, 0)
    # Busy in the first 3 of each 10, of which it is at the 8th at time 0; two threads.
    assert one.cpu_ns(np.array([0, 2, 4, 5, 12, 22])).tolist() == [0, 0, 4, 6, 6, 12]
    assert one.delay_ns(np.array([5])).tolist() == [6]


def test_agents_are_on_every_host_and_low_priority_work_on_some(make_job):
    jobs = [make_job(seed=seed) for seed in range(100)]
    names = [[one.name for one in foreign(job)] for job in jobs]
    assert all(found.count("dcgm-exporter") == 2 for found in names)
    with_low = sum("system" in found for found in names)
    assert 20 < with_low < 55  # 36 of 100 pairs of hosts on average
    busy = [one.busy_ns / one.period_ns for one in foreign(jobs[0]) if one.nice == 0]
    assert sum(busy) < 0.06


def test_an_agent_that_polls_often_is_that_process(make_job):
    job = make_job()
    job.host.poll_every_ns, job.host.poll_ns, job.host.polled_hosts = 250 * MS, 50 * MS, (1,)
    busy = {
        one.host: one.cpu_ns(np.array([10**10]))[0]
        for one in foreign(job)
        if one.name == "dcgm-exporter"
    }
    assert busy[0] == pytest.approx(60 * MS, abs=7 * MS)
    assert busy[1] == pytest.approx(40 * 56 * MS, abs=57 * MS)


def test_hogs_get_what_cores_leave(make_job):
    job = make_job(cores=8)
    job.host.hogs = {0: 30}
    hog = next(one for one in foreign(job) if one.threads == 30)
    # 32 runnable threads on 8 cores: a quarter of the time each.
    assert hog.busy_ns / hog.period_ns == pytest.approx(0.25, abs=0.001)
    assert hog.delay_q16 / ONE == pytest.approx(3, abs=0.01)


def test_interfaces_carry_the_collectives_and_headers(made):
    found = network(made())
    share = found.groupby("rank")["tx_bytes"].sum() / 8_000_000 / 1.02
    assert ((share > 1.5) & (share < 3)).all()
    assert (found["tx_dropped"] == 0).all()


def test_a_lossy_path_is_sent_over_again(made, job):
    job.network.transport = "socket"
    job.network.loss_ppm = {(0, 1): 10_000}
    found = network(made(job))
    again = found["retransmits"].sum() * 1448 / found["tx_bytes"].sum()
    assert again == pytest.approx(0.01, rel=0.3)


def test_a_pause_storm_drops_packets_on_roce_alone(made, job):
    job.network.pause_storm_q16 = ONE // 20
    assert network(made(job))["tx_dropped"].sum() == 0
    job.network.transport = "roce"
    assert network(made(job))["tx_dropped"].sum() > 10


def test_a_slow_path_fills_the_queue_of_who_sends_into_it(made, job):
    usual = network(made())
    job.network.link_q16 = {(0, 1): ONE // 4}
    slow = network(made(job))
    full = slow["send_queue_bytes"] > 0
    assert (full == (usual["send_queue_bytes"] > 0)).all()
    assert (slow["send_queue_bytes"][full] == 2 * usual["send_queue_bytes"][full]).all()


def test_traffic_of_others_on_the_interface_of_a_cpu_job_counts(made, job):
    job.machine = MACHINES["cpu"]
    plain = network(made(job)).groupby("rank")["tx_bytes"].sum()
    job.twin = Twin(flows={(0, 1): 1})
    more = network(made(job)).groupby("rank")["tx_bytes"].sum() - plain
    assert more[1] == 0
    assert 0.5 < more[0] / (0.3 * job.machine.nic_bytes_per_s / 2) < 1.1
