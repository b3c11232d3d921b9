"""What the sampler makes of GPU samples."""

import multiprocessing
import os
import time
from pathlib import Path

from injectors.recorder.sampler import INTERVAL_S, Role, Sampler


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
