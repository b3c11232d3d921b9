"""A job's settings as conditions of its steps, and what a run makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from injectors.sim.conditions import Dynamics
from injectors.sim.engine import Engine
from injectors.sim.job import ONE, Checkpoint, Flows, Gpus, Host, Job, Loader, Network
from injectors.sim.machine import MACHINES
from injectors.sim.program import (
    Conditions,
    Ints,
    Kind,
    LoaderShape,
    Noise,
    Op,
    Program,
    Stream,
)
from injectors.sim.run import simulate
from injectors.sim.workloads import SIMULATED

MakeJob = Callable[..., Job]
MS = 10**6
DATA = Stream.DATA_PARALLEL


def program(kind: Kind = Kind.KERNEL) -> Program:
    """A step of about 20 ms: 20 launches, an all-reduce, every pause, a batch, a checkpoint."""
    pauses = ["respawn", "extra", "gc", "suspend", "poll", "retry", "checkpoint", "metric"]
    found = Program(
        4,
        groups={"data": [[0, 1, 2, 3]]},
        work_rows=["constant", "tokens", "pcie", "checkpoint"],
        transfer_rows=["data"],
        pauses=pauses,
        batches=1,
    )
    found.add(Op(Kind.MARK, "begin"))
    found.add(Op(Kind.NEXT_BATCH, "next", host_ns=10_000))
    for row, name in enumerate(pauses):
        found.add(Op(Kind.PAUSE, f"pause/{name}", pause=row))
    launch_ns = 5_000 if kind == Kind.KERNEL else 0
    for i in range(20):
        costs = {"compute_ns": 800_000, "memory_ns": 300_000}
        calls = {"host_ns": 200_000, "launch_ns": launch_ns}
        found.add(Op(kind, f"k{i}", noise=Noise.GEMM, work=1, **costs, **calls))
    found.add(
        Op(
            Kind.COLLECTIVE,
            "sum",
            stream=DATA,
            launch_ns=launch_ns,
            memory_ns=2 * MS,
            groups="data",
        )
    )
    found.add(Op(Kind.WAIT_STREAM, "wait", other=int(DATA)))
    found.add(Op(Kind.SYNC, "loss", host_ns=1_000, launch_ns=4_000))
    if kind == Kind.INLINE:
        found.add(Op(Kind.SYNC, "reduced", stream=DATA))
    found.add(Op(Kind.MARK, "end"))
    return found


def run(job: Job, steps: int = 12, of: Program | None = None) -> tuple[list[Conditions], Ints]:
    """Return the conditions of every step, and when each ended, (steps, ranks)."""
    of = of or program()
    dynamics = Dynamics(job, of)
    engine = Engine(of, LoaderShape(job.loader.workers), job.seed, "numpy")
    given, ends = [], []
    for step in range(steps):
        given.append(dynamics.conditions(step))
        times = engine.step(step, given[-1])
        ends.append(times.end[-1].copy())
        dynamics.observe(step, times)
    return given, np.stack(ends)


def changed(job: Job, other: Job) -> set[str]:
    """Names of the conditions that differ in any step."""
    pairs = list(zip(run(job)[0], run(other)[0], strict=True))
    return {
        field.name
        for field in fields(Conditions)
        if any((getattr(a, field.name) != getattr(b, field.name)).any() for a, b in pairs)
    }


def step_ns(job: Job, steps: int = 12, of: Program | None = None) -> float:
    ends = run(job, steps, of)[1]
    return float((ends[-1] - ends[0]).mean() / (steps - 1))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"host": Host(extra_ns={0: MS})}, {"pause_ns"}),
        ({"host": Host(metric_every=3, metric_ns=MS)}, {"pause_ns"}),
        ({"host": Host(retry_every=3, retry_ns=MS)}, {"pause_ns"}),
        ({"host": Host(pinned_hogs={1: 1})}, {"preempt_q16", "preempt_ns", "fetch_ns"}),
        ({"host": Host(quota_q16={1: ONE // 2})}, {"preempt_q16", "preempt_ns", "fetch_ns"}),
        ({"host": Host(frequency_q16={1: ONE // 2})}, {"host_q16", "fetch_ns"}),
        ({"loader": Loader(workers=0, decode_ns=3 * MS)}, {"fetch_ns"}),
        ({"network": Network(nic_q16={0: ONE // 2})}, {"transfer_q16"}),
        ({"network": Network(latency_ns={(0, 1): 9})}, {"transfer_ns"}),
        ({"network": Network(background=Flows(1, 900_000_000))}, {"transfer_q16"}),
        ({"gpus": Gpus(silicon_q16={0: ONE // 2})}, {"clock_q16"}),
        ({"gpus": Gpus(power_limit_w={0: 200})}, {"clock_q16"}),
        ({"gpus": Gpus(neighbours={0: 1})}, {"clock_q16", "memory_q16", "work_q16"}),
        ({"gpus": Gpus(spill_q16=ONE // 50)}, {"memory_q16"}),
        ({"gpus": Gpus(contention_q16=ONE)}, {"contention_q16"}),
        ({"gpus": Gpus(overlap_q16=ONE)}, {"overlap_q16"}),
    ],
)
def test_a_setting_changes_nothing_but_what_it_is_about(
    make_job: MakeJob, settings: dict[str, Any], expected: set[str]
) -> None:
    usual = make_job(loader=Loader(workers=0, decode_ns=2 * MS))
    other = replace(usual, **settings)
    assert changed(usual, other) == expected


def test_the_same_job_runs_the_same_way_twice(make_job: MakeJob) -> None:
    assert changed(make_job(), make_job()) == set()
    assert (run(make_job())[1] == run(make_job())[1]).all()
    assert changed(make_job(), make_job(seed=2)) >= {"work_q16", "fetch_ns", "clock_q16"}


def test_conditions_stay_as_they_were(make_job: MakeJob) -> None:
    host = Host(suspended_q16={0: ONE // 4}, gc_every=3, gc_ns=MS)
    dynamics = Dynamics(make_job(host=host), program())
    engine = Engine(program(), LoaderShape(0), 1, "numpy")
    kept, copies = [], []
    for step in range(5):
        kept.append(dynamics.conditions(step))
        copies.append(
            replace(
                kept[-1], **{f.name: getattr(kept[-1], f.name).copy() for f in fields(Conditions)}
            )
        )
        dynamics.observe(step, engine.step(step, kept[-1]))
    for now, then in zip(kept, copies, strict=True):
        assert all(
            (getattr(now, f.name) == getattr(then, f.name)).all() for f in fields(Conditions)
        )


def test_pauses_and_fetches_can_be_asked_for(make_job: MakeJob) -> None:
    dynamics = Dynamics(make_job(host=Host(extra_ns={1: MS})), program())
    given = dynamics.conditions(0)
    assert list(dynamics.pauses_of(0)) == program().pauses
    assert (dynamics.pauses_of(0)["extra"] == given.pause_ns[1]).all()
    assert (dynamics.fetches_of(0).total_ns == given.fetch_ns).all()


def test_a_stopped_process_costs_its_share(make_job: MakeJob) -> None:
    host = Host(suspended_q16={1: ONE * 3 // 10}, suspended_period_ns=100 * MS)
    slow = step_ns(make_job(host=host), steps=60) / step_ns(make_job(), steps=60)
    assert slow == pytest.approx(1 / 0.7, rel=0.05)


def test_a_quota_and_foreign_threads_cost_their_share_of_host_time(make_job: MakeJob) -> None:
    """On CPUs all time is host time."""
    cpu = program(Kind.INLINE)

    def job(**host: Any) -> Job:
        return make_job("cpu", loader=Loader(workers=0, decode_ns=0), host=Host(**host))

    usual = step_ns(job(), 200, cpu)
    everyone = range(4)
    throttled = step_ns(job(quota_q16=dict.fromkeys(everyone, ONE * 4 // 10)), 200, cpu)
    # 2.65 was measured at a quota of 0.4 cores.
    assert throttled / usual == pytest.approx(2.5, rel=0.35)
    shared = step_ns(job(pinned_hogs=dict.fromkeys(everyone, 1)), 60, cpu)
    assert shared / usual == pytest.approx(2, rel=0.25)
    half = step_ns(job(pinned_hogs=dict.fromkeys(everyone, 1), hog_duty_q16=ONE // 2), 60, cpu)
    assert half / usual == pytest.approx(1.5, rel=0.25)


def test_an_asynchronous_checkpoint_slows_the_steps_after_it(make_job: MakeJob) -> None:
    saved = Checkpoint(4, 10**8, 2 * 10**9, asynchronous=True, lock_share_q16=ONE // 2)
    given, _ = run(make_job(checkpoint=saved))
    lost = [int(one.preempt_q16[0]) * int(one.preempt_ns[0]) for one in given]
    # 50 ms of writing beside steps of 20 ms and more, after the fourth step and the eighth.
    assert lost[:4] == [lost[0]] * 4 and lost[7] == lost[0]
    assert lost[4] > 2 * lost[0] and lost[4] >= lost[5] >= lost[6] and lost[8] > 2 * lost[0]
    assert all(one.preempt_q16[1] == given[0].preempt_q16[1] for one in given)  # rank 0 saves
    assert [int(one.work_q16[3].max()) for one in given[:5]] == [0, 0, 0, ONE, 0]
    assert all((one.pause_ns == 0).all() for one in given)


def test_a_cap_slows_the_clock_and_the_step(make_job: MakeJob) -> None:
    capped = make_job(gpus=Gpus(power_limit_w={2: 250}))
    given, _ = run(capped)
    assert given[-1].clock_q16[2] > 1.3 * ONE
    assert (given[-1].clock_q16[[0, 1, 3]] < 1.02 * ONE).all()
    assert step_ns(capped) > 1.2 * step_ns(make_job())


def test_ranks_without_devices_have_none(make_job: MakeJob) -> None:
    cpu = make_job("cpu", host=Host(memory_traffic_q16={1: ONE * 5 // 4}))
    of = program(Kind.INLINE)
    dynamics = Dynamics(cpu, of)
    given = dynamics.conditions(0)
    assert dynamics.devices == []
    assert given.clock_q16.tolist() == given.memory_q16.tolist() == [ONE] * 2 + [ONE * 5 // 4] * 2


def test_slow_steps_begin_later(make_job: MakeJob) -> None:
    """Other jobs' traffic comes by the clock, whatever the job does."""
    network = Network(background=Flows(2, 350 * MS, 500 * MS))
    quick, slow = (
        make_job(network=network),
        make_job(network=network, host=Host(extra_ns={0: 200 * MS})),
    )
    shares = [np.stack([one.transfer_q16[0, 0] for one in run(j)[0]]) for j in (quick, slow)]
    assert (shares[0] != shares[1]).any()


@pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")
@pytest.mark.parametrize("name", ["ddp_transformer", "pipeline_transformer", "moe_transformer"])
def test_whole_jobs_run_the_same_way_with_both_backends(make_job: MakeJob, name: str) -> None:
    workload = SIMULATED[name](layers=4)
    places = workload.places(8, MACHINES["h100"])
    host = Host(gc_every=2, gc_ns=5 * MS, pinned_hogs={1: 2}, suspended_q16={0: ONE // 4})
    job = replace(make_job(places=places, host=host, steps=4), workload=workload)
    workload.set_up(job)
    of = workload.compile(job)
    first, second = (simulate(job, of, (0, 5), backend) for backend in ("numba", "numpy"))
    assert (first.step_ns == second.step_ns).all() and (first.ready == second.ready).all()
    for step, kept in first.kept.items():
        for field in fields(kept):
            assert (getattr(kept, field.name) == getattr(second.kept[step], field.name)).all()
    for one, other in zip(first.devices, second.devices, strict=True):
        assert all((getattr(one, f.name) == getattr(other, f.name)).all() for f in fields(one))
