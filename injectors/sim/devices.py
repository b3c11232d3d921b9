"""What the devices of a job do and how they are: load, clocks, power, temperature, step by step."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from injectors.sim import noise, thermal
from injectors.sim.compiled import COMMUNICATION
from injectors.sim.expected import Expected
from injectors.sim.job import ONE, Job
from injectors.sim.machine import Gpu
from injectors.sim.program import Ints, Kind, Op, Program, StepTimes, Stream

SILICON_Q16 = 262  # spread of healthy devices' speed, 0.4 %
# Kernels over alone, by foreign processes that compute (ByteDance, OSDI 2025), and for each more.
NEIGHBOURS_Q16 = (ONE, 76022, 91750, 133038)
NEIGHBOUR_MORE_Q16, NEIGHBOUR_LOAD_Q16 = ONE // 2, ONE // 8
SHARED_Q16 = 2 * ONE  # two ranks of the job on one device


@dataclass(frozen=True)
class DeviceState:
    """Devices in one step, (ranks,) of int64: the device of each rank's own place.

    Attributes:
        compute_ns: Time of arithmetic units in kernels of the COMPUTE stream.
        memory_ns: Time of the memory in them.
        kernels_ns: Time of these kernels.
        communication_ns: Time of communication kernels, which spin while they wait.
        clock_mhz: SM clock.
        power_mw: Drawn at the step's end.
        temperature_mc: Then, in 1/1000 degree.
        reasons: Bits of NVML's reasons for the clock.
    """

    compute_ns: Ints
    memory_ns: Ints
    kernels_ns: Ints
    communication_ns: Ints
    clock_mhz: Ints
    power_mw: Ints
    temperature_mc: Ints
    reasons: Ints


@dataclass(frozen=True)
class Busy:
    """Time of devices in a step, (ranks,) each; see `DeviceState`."""

    compute_ns: Ints
    memory_ns: Ints
    kernels_ns: Ints
    communication_ns: Ints


class _Work:
    """Adds up what devices did from the times of a step."""

    def __init__(self, program: Program) -> None:
        self._weights = np.array([_weights(op) for op in program.ops], np.int64).reshape(-1, 4).T

    def busy(self, times: StepTimes) -> Busy:
        """Return the sums; what did not happen begins and ends at -1."""
        took = times.end - times.start
        compute, memory, kernels, joins = self._weights @ took
        return Busy(compute >> 16, memory >> 16, kernels, joins)


def _weights(op: Op) -> tuple[int, int, int, int]:
    """Shares (Q16) of an op's time for arithmetic and memory; whether it is kernel, transfer."""
    if op.kind in COMMUNICATION:
        return 0, 0, 0, 1
    if op.kind != Kind.KERNEL or op.stream != Stream.COMPUTE:
        return 0, 0, 0, 0
    longer = max(op.compute_ns, op.memory_ns, 1)
    return op.compute_ns * ONE // longer, op.memory_ns * ONE // longer, 1, 0


class Devices:
    """The GPUs of a job.

    Attributes:
        states: Of every step so far.
    """

    def __init__(self, job: Job, program: Program, gpu: Gpu, expected: Expected) -> None:
        ranks = job.places.ranks
        self.states: list[DeviceState] = []
        self._work = _Work(program)
        self._clocks = thermal.Clocks(gpu, thermal.boards(gpu, job.gpus, ranks, job.seed))
        own = np.arange(ranks)
        self._device = own.copy()
        for rank, device in job.gpus.device_of.items():
            self._device[rank] = device
        self._silicon_q16 = self._speed(job, own)
        self._neighbours = np.array([job.gpus.neighbours.get(r, 0) for r in own.tolist()], np.int64)
        self._shared_q16 = self._sharing()
        self._most_mhz = gpu.sm_clock_mhz
        self._clocks.settle(self._load(_as_busy(expected), np.full(ranks, expected.step_ns)))

    @property
    def clock_q16(self) -> Ints:
        """How much longer arithmetic takes each rank than nominal."""
        slower = self._clocks.clock_q16 * ONE // self._silicon_q16
        return (slower * self._shared_q16 >> 16)[self._device]

    @property
    def shared_q16(self) -> Ints:
        """How much longer all kernels of a rank take since others use its device."""
        return self._shared_q16[self._device]

    def observe(self, times: StepTimes, took_ns: Ints) -> None:
        """Take a step that lasted so long, (ranks,)."""
        busy = self._of_devices(self._work.busy(times))
        clocks = thermal.on_grid(self._clocks.clock_mhz * self._silicon_q16 >> 16, self._most_mhz)
        load = self._load(busy, took_ns)
        # The first step waits for its first batch; the second is the first like all others.
        if len(self.states) == 1:
            self._clocks.settle(load)
        elif self.states:
            self._clocks.advance(load, took_ns)
        state = self._clocks
        self.states.append(
            DeviceState(
                busy.compute_ns,
                busy.memory_ns,
                busy.kernels_ns,
                busy.communication_ns,
                clocks,
                state.power_mw,
                state.temperature_mc,
                state.reasons,
            )
        )

    def settle(self, since: int, took_ns: int) -> None:
        """Go to where devices settle under what they did in all steps from one on.

        Args:
            since: Number of that step.
            took_ns: Time since it began.
        """
        own = [field.name for field in fields(Busy)]
        sums = [sum(getattr(state, name) for state in self.states[since:]) for name in own]
        if took_ns > 0 and self.states[since:]:
            self._clocks.settle(self._load(Busy(*sums), np.full_like(sums[0], took_ns)))

    def _speed(self, job: Job, own: Ints) -> Ints:
        given = np.array([job.gpus.silicon_q16.get(rank, ONE) for rank in own], np.int64)
        return (
            given * (ONE + noise.normal_q16(noise.keys(job.seed, "silicon", own), SILICON_Q16))
            >> 16
        )

    def _sharing(self) -> Ints:
        last = len(NEIGHBOURS_Q16) - 1
        found = np.array(NEIGHBOURS_Q16, np.int64)[np.minimum(self._neighbours, last)]
        found += np.maximum(self._neighbours - last, 0) * NEIGHBOUR_MORE_Q16
        users = np.bincount(self._device, minlength=len(self._device))
        return np.where(users > 1, found * (ONE + (users - 1) * (SHARED_Q16 - ONE)) >> 16, found)

    def _of_devices(self, busy: Busy) -> Busy:
        """Give what ranks did to the devices that they did it on."""
        if (self._device == np.arange(len(self._device))).all():
            return busy
        found = []
        for values in (busy.compute_ns, busy.memory_ns, busy.kernels_ns, busy.communication_ns):
            device = np.zeros_like(values)
            np.add.at(device, self._device, values)
            found.append(device)
        return Busy(*found)

    def _load(self, busy: Busy, took_ns: Ints) -> thermal.Load:
        took = np.maximum(took_ns, 1)
        shares = [
            np.minimum(values * ONE // took, ONE)
            for values in (busy.compute_ns, busy.memory_ns, busy.communication_ns)
        ]
        shares[0] = np.minimum(shares[0] + self._neighbours * NEIGHBOUR_LOAD_Q16, ONE)
        return thermal.Load(*shares)


def _as_busy(expected: Expected) -> Busy:
    nothing = np.zeros_like(expected.device_ns)
    return Busy(expected.compute_ns, expected.memory_ns, expected.device_ns, nothing)
