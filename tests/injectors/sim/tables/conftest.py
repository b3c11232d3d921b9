"""A run that was written down by hand: two ranks on two hosts, three steps of 100 ms."""

from collections.abc import Callable

import numpy as np
import pytest

from injectors.sim.devices import DeviceState
from injectors.sim.fetches import Fetches
from injectors.sim.job import ONE, Job, Places
from injectors.sim.machine import MACHINES
from injectors.sim.program import Collective, Conditions, Kind, Label, Op, Program
from injectors.sim.run import Collected, Run
from injectors.sim.workloads.data_parallel import DdpTransformer

MS = 10**6
STEPS, RANKS = 3, 2
BUCKET = Label(
    kernel="ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    collective=Collective("allreduce", 8_000_000, "c10::BFloat16", "default_pg", 2),
)
COPY = Label(kernel="Memcpy HtoD (Pinned -> Device)", category="gpu_memcpy", bytes=1_000_000)


def hand_job() -> Job:
    """A transformer of 4 x 2 sequences of 2048 tokens on two H100 machines of one GPU each."""
    workload = DdpTransformer(layers=4, micro_batch=4, accumulation=2)
    places = Places(ranks=RANKS, per_host=1, data=RANKS)
    job = Job(workload, MACHINES["h100"], places, seed=11, steps=STEPS, profiled_steps=1)
    job.loader.workers, job.loader.prefetch = 2, 1
    return job


def hand_program() -> Program:
    """One bucket of gradients a step, one batch, and the marks of every training step."""
    ops = [
        Op(Kind.MARK, "begin"),
        Op(Kind.NEXT_BATCH, "m0/next_batch"),
        Op(Kind.KERNEL, "m0/copy", label=COPY),
        Op(Kind.MARK, "data"),
        Op(Kind.MARK, "forward/0"),
        Op(Kind.COLLECTIVE, "m0/ddp/bucket0", label=BUCKET, groups="data"),
        Op(Kind.MARK, "backward/0"),
        Op(Kind.MARK, "optimizer"),
        Op(Kind.PAUSE, "pause/gc", pause=0),
        Op(Kind.PAUSE, "pause/checkpoint", pause=1),
        Op(Kind.MARK, "checkpoint"),
        Op(Kind.MARK, "end"),
    ]
    return Program(
        ranks=RANKS,
        ops=ops,
        groups={"data": [[0, 1]]},
        work_rows=["constant", "attention"],
        transfer_rows=["data"],
        pauses=["gc", "checkpoint"],
        batches=1,
    )


def ordinary(program: Program) -> Conditions:
    """Conditions in which nothing is out of the ordinary."""
    ranks = program.ranks
    one, none = np.full(ranks, ONE), np.zeros(ranks, np.int64)
    return Conditions(
        work_q16=np.full((len(program.work_rows), ranks), ONE),
        clock_q16=one,
        memory_q16=one,
        host_q16=one,
        preempt_q16=none,
        preempt_ns=none,
        transfer_q16=np.full((len(program.transfer_rows), ranks), ONE),
        transfer_ns=np.zeros((len(program.transfer_rows), ranks), np.int64),
        pause_ns=np.zeros((len(program.pauses), ranks), np.int64),
        fetch_ns=np.full((program.batches, ranks), 40 * MS),
        overlap_q16=none,
        contention_q16=none,
    )


def busy_devices() -> DeviceState:
    """Devices that compute for 60 ms and communicate for 40 ms of a step."""
    values = (50 * MS, 20 * MS, 60 * MS, 40 * MS, 1980, 500_000, 61_900, 4)
    return DeviceState(*(np.full(RANKS, value, np.int64) for value in values))


def hand_run(job: Job | None = None) -> Run:
    """Steps of 100 ms: 5 ms for the batch, 30 forward, 50 backward, 10 to update, 5 to end."""
    job, program = job or hand_job(), hand_program()
    run = Run(job, program, (0,))
    begins = np.arange(STEPS)[:, None] * 100 * MS + np.zeros(RANKS, np.int64)
    after = {"begin": 0, "data": 5, "forward/0": 35, "backward/0": 85, "optimizer": 95}
    for path, ms in {**after, "checkpoint": 95, "end": 100}.items():
        run.marks[path] = begins + ms * MS
    asked, joined = begins + np.array([40, 50]) * MS, begins + 50 * MS
    run.collectives["m0/ddp/bucket0"] = Collected(asked, asked, joined, begins + 80 * MS)
    run.pauses = {"pause/gc": begins + 95 * MS, "pause/checkpoint": begins + 95 * MS}
    run.taken = (begins + 5 * MS)[:, None]
    run.waited = np.full((STEPS, 1, RANKS), 4 * MS)
    # Two workers, one batch ahead each: batch 2 begins when batch 0 was taken.
    run.fetch_start = np.array([0, 0, 5])[:, None, None] * MS + np.zeros((1, RANKS), np.int64)
    run.ready = run.fetch_start + 40 * MS
    part = np.full((1, RANKS), 10 * MS)
    run.fetches = [
        Fetches(np.full((1, RANKS), step % 2), part, 3 * part, 3 * part) for step in range(STEPS)
    ]
    run.conditions = [ordinary(program) for _ in range(STEPS)]
    run.devices = [busy_devices() for _ in range(STEPS)]
    return run


@pytest.fixture
def made() -> Callable[..., Run]:
    """Return the maker of hand-written runs."""
    return hand_run


@pytest.fixture
def job() -> Job:
    """The job of the hand-written run."""
    return hand_job()
