"""What the sampler makes of its samples."""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cases.tables import TABLES
from injectors.recorder import procfs
from injectors.recorder.sampler import INTERVAL_S, Role, Sampler

GROWTH = TABLES["processes"].growth
# A second thread computes, waits for a line and ends; the process ends with its input.
TWO_THREADS = """
import sys, threading

def work():
    sum(range(10**7))
    print("computed", flush=True)
    sys.stdin.readline()

thread = threading.Thread(target=work)
thread.start()
thread.join()
sys.stdin.readline()
"""
STARTED = {"time_ns": 0, "throttled_ns": None, "levels": {}, "gpu": [], "stats": {}}
STARTED |= {"host": {}, "network": {}, "counters": {}, "affinity": {}}


class Nvml:
    """Two devices, the second without NVLink; counters grow by 7 and 9 bytes a sample."""

    count = 1000

    def sample(self, time_ns):
        self.count += 1
        first = {"nvlink_tx_bytes": self.count * 7, "nvlink_rx_bytes": self.count * 9}
        second = dict.fromkeys(first)
        return [{"rank": i, "time_ns": time_ns, **row} for i, row in enumerate((first, second))]


def test_nvlink_counters_begin_at_zero_in_every_recording():
    nvml = Nvml()
    for _ in range(2):
        with Sampler({}, frozenset(), None, start_ns=0, nvml=nvml) as sampler:
            pass
        rows = sampler.tables()["gpu"]
        assert [row["rank"] for row in rows] == [0, 1, 0, 1]
        assert [row["nvlink_tx_bytes"] for row in rows] == [0, None, 7, None]
        assert [row["nvlink_rx_bytes"] for row in rows] == [0, None, 9, None]
        assert rows[2]["time_ns"] > rows[0]["time_ns"]


def test_no_gpu_rows_without_nvml():
    with Sampler({}, frozenset(), None, start_ns=0) as sampler:
        pass
    assert sampler.tables()["gpu"] == []


def test_workers_that_a_rank_starts_meanwhile_are_its_own():
    fork = multiprocessing.get_context("fork")
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    earlier = {int(pid): Role("other") for pid in path.read_text().split()}  # of other tests
    roles = {os.getpid(): Role("rank", 3), **earlier}
    with Sampler(roles, frozenset(), None, start_ns=0) as sampler:
        for _ in range(2):  # two generations of one worker each
            worker = fork.Process(target=time.sleep, args=(3 * INTERVAL_S,))
            worker.start()
            worker.join()
    rows = sampler.tables()["processes"]
    workers = [row for row in rows if row["role"] == "loader_worker"]
    assert len({row["process"] for row in workers}) == 2
    assert {(row["rank"], row["worker"]) for row in workers} == {(3, 0)}
    assert all(row["cpu_ns"] >= 0 for row in workers)
    assert sum(row["process"] == workers[0]["process"] for row in workers) >= 2


@pytest.fixture
def child():
    command = [sys.executable, "-c", TWO_THREADS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"computed\n"
        yield process
        process.kill()


def sampler_of(pid):
    return Sampler({pid: Role("rank", 0)}, frozenset(), None, start_ns=0)


def take(sampler, count=1):
    for _ in range(count):
        sampler._samples.append(sampler._sample())


def end_thread(child):
    child.stdin.write(b"\n")
    child.stdin.flush()
    while len(procfs.threads(child.pid)) > 1:
        time.sleep(0.01)


def end_unreaped(child):
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def test_a_thread_that_ends_takes_nothing_from_what_the_others_did(child):
    sampler = sampler_of(child.pid)
    take(sampler)
    used = procfs.process_stat(child.pid).cpu_ns
    end_thread(child)
    take(sampler)
    (row,) = sampler.tables()["processes"]
    assert all(row[name] >= 0 for name in GROWTH)
    assert row["cpu_ns"] < used / 2


def test_a_process_that_has_ended_shrinks_in_no_counter(child):
    sampler = sampler_of(child.pid)
    take(sampler)
    end_thread(child)
    end_unreaped(child)
    take(sampler, 2)
    child.wait()
    take(sampler)
    rows = [row for row in sampler.tables()["processes"] if row["role"] == "rank"]
    assert len(rows) == 2  # none of when it had gone
    assert all(row[name] >= 0 for row in rows for name in GROWTH)


@pytest.mark.parametrize("reading", ["threads", "read"])
def test_a_process_that_goes_while_it_is_sampled_has_no_row(child, monkeypatch, reading):
    sampler = sampler_of(child.pid)
    take(sampler)
    stat = procfs.process_stat(child.pid)
    monkeypatch.setattr(procfs, "process_stat", lambda pid: stat if pid == child.pid else None)
    real = {"threads": procfs.threads, "read": procfs.read}[reading]
    gone = {"threads": [], "read": ""}[reading]
    monkeypatch.setattr(
        procfs, reading, lambda what: gone if str(child.pid) in str(what) else real(what)
    )
    take(sampler)
    assert [row for row in sampler.tables()["processes"] if row["role"] == "rank"] == []


def test_counters_of_a_zombie_that_read_as_zero_are_unknown():
    before = procfs.ProcessCounters({"9": {"cpu_ns": 5, "run_delay_ns": 3}}, {"read_bytes": 80})
    after = procfs.ProcessCounters({"9": {"cpu_ns": 0, "run_delay_ns": 3}}, {"read_bytes": 0})
    stat = procfs.ProcessStat("python", 1, 5, 0, 1, 0)
    samples = [
        STARTED | {"stats": {9: stat}, "affinity": {9: 2}, "counters": {9: counters}}
        for counters in (before, after)
    ]
    sampler = sampler_of(9)
    sampler._samples += samples
    (row,) = sampler.tables()["processes"]
    assert {name: row[name] for name in GROWTH} == dict.fromkeys(GROWTH) | {"run_delay_ns": 0}


def test_host_and_network_counters_that_fall_or_cannot_be_read_are_unknown():
    before = STARTED | {
        "host": {"cpu_busy_ns": 5, "cpu_iowait_ns": 9, "psi_io_some_ns": 4},
        "network": {0: {"tx_bytes": 10, "rx_bytes": 7, "send_queue_bytes": 90}},
        "throttled_ns": 8,
    }
    after = STARTED | {
        "host": {"cpu_busy_ns": 6, "cpu_iowait_ns": 8, "disk_read_bytes": 512},
        "network": {0: {"tx_bytes": 14, "retransmits": 3, "send_queue_bytes": 20}, 1: {}},
        "throttled_ns": 7,
    }
    sampler = Sampler({}, frozenset(), None, start_ns=0)
    sampler._samples += [before, after]
    tables = sampler.tables()
    (host,), (network, ended) = tables["host"], tables["network"]
    assert host["cpu_busy_ns"] == 1
    unknown = ("cpu_iowait_ns", "psi_io_some_ns", "disk_read_bytes", "cgroup_throttled_ns")
    assert [host[name] for name in unknown] == [None] * 4
    assert network == {
        "rank": 0,
        "time_ns": 0,
        "tx_bytes": 4,
        "rx_bytes": None,
        "retransmits": None,
        "send_queue_bytes": 20,
    }
    assert ended == {"rank": 1, "time_ns": 0, "send_queue_bytes": None}


def test_devices_whose_counters_restart_have_unknown_growth():
    counts = iter([5, 9, 2])

    class Restarted(Nvml):
        def sample(self, time_ns):
            return [{"rank": 0, "nvlink_tx_bytes": next(counts), "nvlink_rx_bytes": None}]

    sampler = Sampler({}, frozenset(), None, start_ns=0, nvml=Restarted())
    take(sampler, 3)
    assert [row["nvlink_tx_bytes"] for row in sampler.tables()["gpu"]] == [0, 4, None]
