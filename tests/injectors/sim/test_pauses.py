"""When host threads stand still, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from injectors.sim.expected import expect
from injectors.sim.job import ONE, Checkpoint, Compiler, Host, Job, Loader
from injectors.sim.pauses import Pauses
from injectors.sim.program import Ints, Program

MakeJob = Callable[..., Job]
MS = 10**6
STEPS = 40


@pytest.fixture
def pauses(make_job: MakeJob) -> Callable[..., Ints]:
    """Return a function that gives (steps, ranks) of one pause in steps of 100 ms."""

    def of(name: str, step_ns: int = 100 * MS, **fields: Any) -> Ints:
        program = Program(4, pauses=["extra", name])
        fetch_ns = np.arange(4, dtype=np.int64)
        found = Pauses(make_job(**fields), program, expect(program), lambda step: fetch_ns)
        now = np.zeros(4, np.int64)
        rows = []
        for step in range(STEPS):
            rows.append(found.of(step, now, step_ns)[1])
            now = now + step_ns + found.by_the_clock_ns.max()
        return np.stack(rows)

    return of


def within(lengths: Ints, usual_ns: int) -> bool:
    """Whether lengths are 0.8 to 1.2 of what is set, and not all alike."""
    low, high = lengths.min(), lengths.max()
    return bool(0.8 * usual_ns - 1 <= low < high <= 1.2 * usual_ns)


def test_without_a_setting_nothing_stands_still(pauses: Callable[..., Ints]) -> None:
    names = ["gc", "recompile", "autotune", "retry", "metric"]
    names += ["checkpoint", "respawn", "suspend", "poll"]
    assert all((pauses(name) == 0).all() for name in names)


def test_collections_come_once_in_so_many_steps_on_each_rank(
    pauses: Callable[..., Ints],
) -> None:
    found = pauses("gc", host=Host(gc_ns=50 * MS, gc_every=5))
    happened = found > 0
    assert (happened.reshape(8, 5, 4).sum(axis=1) == 1).all()
    assert (happened != happened[:, :1]).any()  # not at the same steps
    assert within(found[happened], 50 * MS)


def test_collections_may_come_together_or_on_some_ranks(pauses: Callable[..., Ints]) -> None:
    together = pauses("gc", host=Host(gc_ns=50 * MS, gc_every=5, gc_together=True)) > 0
    assert together.any() and (together == together[:, :1]).all()
    some = pauses("gc", host=Host(gc_ns=50 * MS, gc_every=5, gc_ranks=(2,))) > 0
    assert some.any(axis=0).tolist() == [False, False, True, False]
    # Those ranks collect when they would among others.
    everywhere = pauses("gc", host=Host(gc_ns=50 * MS, gc_every=5)) > 0
    assert (some[:, 2] == everywhere[:, 2]).all()


def test_compiling_stops_all_ranks_at_once(pauses: Callable[..., Ints]) -> None:
    for name in ("recompile", "autotune"):
        compiler = Compiler(**{f"{name}_every": 8, f"{name}_ns": 600 * MS})
        found = pauses(name, compiler=compiler)
        assert ((found > 0).sum(axis=0) == 5).all()
        assert ((found > 0) == (found > 0)[:, :1]).all()
        assert within(found[found > 0], 600 * MS)


def test_allocator_retries_come_on_each_rank_by_itself(pauses: Callable[..., Ints]) -> None:
    found = pauses("retry", host=Host(retry_every=4, retry_ns=40 * MS))
    assert ((found > 0).sum(axis=0) == 10).all() and ((found > 0) != (found > 0)[:, :1]).any()


def test_metrics_are_sent_by_the_first_rank_at_the_interval(pauses: Callable[..., Ints]) -> None:
    found = pauses("metric", host=Host(metric_every=10, metric_ns=200 * MS))
    assert np.flatnonzero(found[:, 0]).tolist() == [9, 19, 29, 39]
    assert (found[:, 1:] == 0).all()


def test_a_checkpoint_is_written_after_every_so_many_steps(pauses: Callable[..., Ints]) -> None:
    saved = Checkpoint(every=20, bytes=10**9, bytes_per_s=2 * 10**9, ranks=(0, 1))
    found = pauses("checkpoint", checkpoint=saved)
    assert np.flatnonzero(found.any(axis=1)).tolist() == [19, 39]
    assert (found[19] > 0).tolist() == [True, True, False, False]
    assert within(found[found > 0], 500 * MS)
    saved.asynchronous = True
    assert (pauses("checkpoint", checkpoint=saved) == 0).all()


def test_workers_start_again_at_each_epoch_and_fetch_first(pauses: Callable[..., Ints]) -> None:
    found = pauses("respawn", loader=Loader(epoch_steps=16, respawn_ns=1_500 * MS))
    assert np.flatnonzero(found[:, 0]).tolist() == [16, 32]
    other = pauses("respawn", loader=Loader(epoch_steps=16, respawn_ns=1_500 * MS))
    assert (found == other).all()
    assert within(found[16] - np.arange(4), 1_500 * MS)  # what the first fetch takes is added


def test_further_work_is_done_in_every_step(pauses: Callable[..., Ints]) -> None:
    found = pauses("extra", host=Host(extra_ns={3: 20 * MS}))
    assert (found[:, :3] == 0).all() and within(found[:, 3], 20 * MS)


@pytest.mark.parametrize(("share", "period_ms"), [(0.2, 100), (0.5, 400), (0.3, 37)])
def test_a_process_is_stopped_for_its_share_of_the_time(
    pauses: Callable[..., Ints], share: float, period_ms: int
) -> None:
    stopped = {1: round(share * ONE)}
    host = Host(suspended_q16=stopped, suspended_period_ns=period_ms * MS)
    found = pauses("suspend", host=host)
    assert (found[:, [0, 2, 3]] == 0).all()
    total = int(found[:, 1].sum())
    assert total / (total + STEPS * 100 * MS) == pytest.approx(share, rel=0.1)


def test_an_agent_polls_by_the_clock(pauses: Callable[..., Ints]) -> None:
    host = Host(poll_every_ns=250 * MS, poll_ns=25 * MS, polled_hosts=(1,))
    found = pauses("poll", host=host)
    assert (found[:, :2] == 0).all() and (found[:, 2] == found[:, 3]).all()
    # 4 s of work and what the polls take themselves: 4.4 s, 17 or 18 of them.
    assert 16 <= (found[:, 2] > 0).sum() <= 19
    long = pauses("poll", step_ns=1_000 * MS, host=host)
    assert 4 * 20 * MS <= long[:, 2].mean() <= 5 * 30 * MS


def test_each_kind_has_its_own_draws(pauses: Callable[..., Ints]) -> None:
    alone = pauses("gc", host=Host(gc_ns=50 * MS, gc_every=5))
    others = Host(gc_ns=50 * MS, gc_every=5, retry_every=5, retry_ns=MS, extra_ns={0: MS})
    assert (pauses("gc", host=others) == alone).all()
    assert ((pauses("retry", host=others) > 0) != (alone > 0)).any()


def test_a_pause_that_nobody_knows_is_refused(make_job: MakeJob) -> None:
    program = Program(4, pauses=["nap"])
    with pytest.raises(ValueError, match=r"pauses must be among \['autotune', .* got \['nap'\]"):
        Pauses(make_job(), program, expect(program), lambda step: np.zeros(4, np.int64))


def test_pauses_of_a_served_model_are_left_to_it(pauses: Callable[..., Ints]) -> None:
    assert (pauses("idle") == 0).all()
