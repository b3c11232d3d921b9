"""What differs from step to step: a job's settings, and how it has fared so far, as `Conditions`.

    dynamics = Dynamics(job, program)
    for step in range(job.steps):
        times = engine.step(step, dynamics.conditions(step))
        dynamics.observe(step, times)

All draws are keyed by (seed, name, step, rank), so a fault that is switched off changes nothing
but what follows from it. What depends on time (polls, stops, other jobs' traffic, temperatures)
goes by when steps began and how long the last one took.
"""

from __future__ import annotations

import numpy as np

from injectors.sim.cpu_time import Losses, cpu_time
from injectors.sim.devices import Devices, DeviceState
from injectors.sim.expected import expect
from injectors.sim.fetches import Fetches, Fetching
from injectors.sim.job import ONE, Job
from injectors.sim.pauses import Pauses, saves
from injectors.sim.program import Conditions, Ints, Program, StepTimes
from injectors.sim.progress import Progress
from injectors.sim.transfers import Transfers
from injectors.sim.work_rows import WorkRows

__all__ = ["DeviceState", "Dynamics"]

LOCK_NS = 5_000_000  # for which a thread keeps the interpreter's lock beside others


class Dynamics:
    """Conditions of every step of a job, in their order.

    Args:
        job: With all that faults have changed.
        program: Whose rows of work, transfers and pauses are filled; ValueError for unknown ones.

    Attributes:
        devices: Of every step so far, empty where ranks compute on CPUs.
    """

    def __init__(self, job: Job, program: Program) -> None:
        ranks = program.ranks
        expected = expect(program)
        self._job = job
        self._chance_ns = expected.chance_ns
        self._cpu = cpu_time(job, expected)
        self._preemption = self._cpu.losses.preemption(self._chance_ns)
        self._fetching = Fetching(job, program.batches, self._cpu.worker_q16)
        self._pauses = Pauses(job, program, expected, self._first_fetch_ns)
        gpu = job.machine.gpu
        self._devices = Devices(job, program, gpu, expected) if gpu else None
        everywhere = np.full(ranks, ONE, np.int64)
        shared_q16 = self._devices.shared_q16 if self._devices else everywhere
        self._memory_q16 = _memory_q16(job, shared_q16)
        self._work = WorkRows(job, program, shared_q16)
        self._transfers = Transfers(job, program)
        self._added_ns = self._transfers.added_ns()
        self._progress = Progress(program, expected.step_ns)
        self._overlap_q16 = np.full(ranks, job.gpus.overlap_q16, np.int64)
        self._contention_q16 = np.full(ranks, job.gpus.contention_q16, np.int64)
        self._paused: list[dict[str, Ints]] = []
        self._names = program.pauses
        self._saved_ns: list[int] = []  # when asynchronous checkpoints began to be written

    @property
    def devices(self) -> list[DeviceState]:
        """Devices in every step so far."""
        return self._devices.states if self._devices else []

    def conditions(self, step: int) -> Conditions:
        """Return the conditions of the next step; its arrays are not written to afterwards."""
        begin, length = self._progress.begin_ns, self._progress.length_ns
        pauses = self._pauses.of(step, begin, length)
        self._paused.append(dict(zip(self._names, pauses, strict=True)))
        first = int(begin.min())
        chance, longest = self._preempted(first, length)
        return Conditions(
            work_q16=self._work.of(step),
            clock_q16=self._devices.clock_q16 if self._devices else self._memory_q16,
            memory_q16=self._memory_q16,
            host_q16=self._host_q16(step),
            preempt_q16=chance,
            preempt_ns=longest,
            transfer_q16=self._transfers.factors_q16(step, first, first + length),
            transfer_ns=self._added_ns,
            pause_ns=pauses,
            fetch_ns=self._fetching.of(step).total_ns,
            overlap_q16=self._overlap_q16,
            contention_q16=self._contention_q16,
        )

    def observe(self, step: int, times: StepTimes) -> None:
        """Take note of how a step went."""
        took_ns = self._progress.observe(times, self._pauses.by_the_clock_ns)
        if self._devices:
            self._devices.observe(times, took_ns)
        if saves(self._job, step) and self._job.checkpoint.asynchronous:
            self._saved_ns.append(int(self._progress.begin_ns.min()))

    def settle(self, since: int, took_ns: int) -> None:
        """Let devices be as warm as if the steps from number `since` on had always gone on.

        For jobs whose first steps are unlike the others; `took_ns` is the time since then.
        """
        if self._devices:
            self._devices.settle(since, took_ns)

    def pauses_of(self, step: int) -> dict[str, Ints]:
        """Return name -> (ranks,) ns of the pauses of a step that has been given conditions."""
        return self._paused[step]

    def fetches_of(self, step: int) -> Fetches:
        """Return what loader workers did for each batch of a step."""
        return self._fetching.of(step)

    def _host_q16(self, step: int) -> Ints:
        """Host time over nominal: the profiler of the last steps takes some, too."""
        job = self._job
        profiled = step >= job.steps - job.profiled_steps
        return self._cpu.host_q16 * job.host.profiled_q16 >> 16 if profiled else self._cpu.host_q16

    def _first_fetch_ns(self, step: int) -> Ints:
        first: Ints = self._fetching.of(step).total_ns[0]
        return first

    def _preempted(self, begin_ns: int, length_ns: int) -> tuple[Ints, Ints]:
        """Chance and length of losing the core; more while a checkpoint is written beside it."""
        saved = self._job.checkpoint
        writing = saved.bytes * 10**9 // saved.bytes_per_s
        end = self._saved_ns[-1] + writing if self._saved_ns else 0
        beside = max(min(end - begin_ns, length_ns), 0)
        if not beside or not saved.lock_share_q16:
            return self._preemption
        share = min(saved.lock_share_q16, ONE * 9 // 10) * beside // length_ns
        losses = Losses(self._cpu.losses.lost_q16.copy(), self._cpu.losses.often_q16.copy())
        ranks = range(self._job.places.ranks) if saved.ranks is None else saved.ranks
        held = np.zeros_like(losses.lost_q16)
        held[list(ranks)] = share * ONE // (ONE - share)
        losses.add(held, LOCK_NS)
        return losses.preemption(self._chance_ns)


def _memory_q16(job: Job, shared_q16: Ints) -> Ints:
    """How much longer memory-bound work takes; on CPUs all work, which shares the host's bus."""
    gpu, places = job.machine.gpu, job.places
    if gpu is None:
        traffic = job.host.memory_traffic_q16
        hosts = [places.host(rank) for rank in range(places.ranks)]
        return np.array([traffic.get(host, ONE) for host in hosts], np.int64)
    faster = gpu.memory_bytes_per_s * gpu.memory_efficiency_q16 // gpu.pcie_bytes_per_s - ONE
    return shared_q16 * (ONE + (job.gpus.spill_q16 * faster >> 16)) >> 16
