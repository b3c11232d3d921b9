"""How long loader workers need for batches."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from injectors.sim.fetches import Fetches, Fetching, crowd_q16, read_time_ns, straggler
from injectors.sim.job import ONE, Job, Loader

MakeJob = Callable[..., Job]
MS = 10**6


@pytest.fixture
def fetched(make_job: MakeJob) -> Callable[..., list[Fetches]]:
    """Return a function that gives 60 steps of two batches, decoding 10 ms each."""

    def of(cpu_q16: int = ONE, **fields: Any) -> list[Fetches]:
        job = make_job(loader=Loader(**{"worker_cores": 64} | fields))
        fetching = Fetching(job, 2, np.full(4, cpu_q16))
        return [fetching.of(step) for step in range(60)]

    return of


def mean_ns(found: list[Fetches], name: str) -> float:
    return float(np.mean([getattr(one, name) for one in found]))


def test_reading_takes_requests_and_bytes(make_job: MakeJob) -> None:
    loader = Loader(workers=1, requests=4, request_ns=200_000, read_bytes=10**6)
    job = make_job(loader=loader)
    assert read_time_ns(job) == 800_000 + 1_000_000  # at 1 GB/s
    # Eight workers on each of two ranks share the host's 8 GB/s.
    loader.workers = 8
    assert read_time_ns(job) == 800_000 + 2_000_000
    loader.extra_reads_q16 = 3 * ONE
    assert read_time_ns(job) == 3 * 2_800_000


def test_a_fetch_is_reading_and_decoding(fetched: Callable[..., list[Fetches]]) -> None:
    found = fetched(requests=0, read_bytes=10 * MS)
    assert mean_ns(found, "read_ns") == pytest.approx(10 * MS, rel=0.03)
    assert mean_ns(found, "cpu_ns") == pytest.approx(10 * MS, rel=0.01)
    assert (found[0].total_ns == found[0].read_ns + found[0].decode_ns).all()
    assert len({int(x) for one in found for x in one.read_ns.ravel()}) > 400


def test_batches_go_round_the_workers(fetched: Callable[..., list[Fetches]]) -> None:
    found = fetched(workers=3)
    numbers = [one.worker[batch, 0] for one in found[:3] for batch in range(2)]
    assert numbers == [0, 1, 2, 0, 1, 2]
    assert (fetched(workers=0)[5].worker == 0).all()


def test_slow_ranks_workers_and_hosts(fetched: Callable[..., list[Fetches]]) -> None:
    usual = np.stack([one.total_ns for one in fetched(workers=4)])
    one_rank = np.stack([o.total_ns for o in fetched(workers=4, rank_q16={2: 3 * ONE})])
    assert (one_rank[:, :, [0, 1, 3]] == usual[:, :, [0, 1, 3]]).all()
    assert np.allclose(one_rank[:, :, 2], 3 * usual[:, :, 2], atol=10)
    worker = np.stack([o.total_ns for o in fetched(workers=4, worker_q16={(2, 1): 2 * ONE})])
    assert np.allclose(worker[::2, 1, 2] / usual[::2, 1, 2], 2, atol=1e-4)
    assert (worker[1::2] == usual[1::2]).all() and (worker[:, 0] == usual[:, 0]).all()
    assert (worker[:, :, [0, 1, 3]] == usual[:, :, [0, 1, 3]]).all()
    slow = fetched(cpu_q16=2 * ONE)
    assert mean_ns(slow, "cpu_ns") == pytest.approx(2 * mean_ns(fetched(), "cpu_ns"), rel=1e-4)
    assert mean_ns(slow, "read_ns") == mean_ns(fetched(), "read_ns")


def test_too_few_cores_stretch_decoding_but_not_its_cpu_time(make_job: MakeJob) -> None:
    loader = Loader(workers=6, worker_cores=2)
    job = make_job(loader=loader)
    assert crowd_q16(job) == 3 * ONE
    found = Fetching(job, 1, np.full(4, ONE)).of(0)
    assert (found.decode_ns // found.cpu_ns == 3).all()


def test_the_late_rank_changes_every_so_many_steps(
    fetched: Callable[..., list[Fetches]],
) -> None:
    usual = np.stack([one.read_ns for one in fetched()])
    slow = np.stack([o.read_ns for o in fetched(straggler_q16=5 * ONE, straggler_every=10)])
    late = (slow[:, 0] > 4 * usual[:, 0]).reshape(6, 10, 4)
    assert (late.sum(axis=2) == 1).all()
    assert (late == late[:, :1]).all()
    who = late[:, 0].argmax(axis=1)
    assert (who[1:] != who[:-1]).all() and len(set(who.tolist())) > 2


def test_no_rank_is_late_twice_in_a_row(make_job: MakeJob) -> None:
    job = make_job()
    turns = [straggler(job, turn) for turn in range(200)]
    assert all(a != b for a, b in pairwise(turns))
    assert {0, 1, 2, 3} == set(turns)


def test_a_program_without_batches_fetches_none(make_job: MakeJob) -> None:
    assert Fetching(make_job(), 0, np.full(4, ONE)).of(3).total_ns.shape == (0, 4)
