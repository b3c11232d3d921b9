"""What devices' clocks do: power, temperature and the limits of both, in whole numbers.

    power = idle + f * V**2 * (A * arithmetic + B * memory + C * communication)
    temperature -> inlet + resistance * power, with a time constant of 20 s

f is the clock over its maximum, V goes from 0.7 to 1 with it, so that f * V**2 falls to 0.71 at
80 % of the clock. Two limits lower the clock in steps of 15 MHz: the power limit at once, the
temperature limit bit by bit above 87 C and back below 83 C. Recordings begin in a job that has
run for long, so temperatures begin where they settle under the job's own load; 20 s is then the
true constant, nothing is accelerated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from injectors.sim import noise
from injectors.sim.job import ONE, Gpus
from injectors.sim.machine import Gpu
from injectors.sim.program import Ints

TIME_CONSTANT_NS = 20 * 10**9
CONTROL_NS = 100_000_000  # between two steps of the temperature's limit
CLOCK_STEP_MHZ, LEAST_CLOCK_MHZ = 15, 345
HOT_MC, COOL_MC, SETTLED_MC, TOO_HOT_MC = 87_000, 83_000, 85_000, 92_000
# Power over the limit less idle, of a device whose whole time is spent so.
ARITHMETIC_Q16, MEMORY_Q16, COMMUNICATION_Q16 = 64225, 26214, 6554  # 0.98, 0.40, 0.10
V_LEAST_Q16 = 45875  # 0.7
ORDINARY_INLET_C, ORDINARY_MC_PER_W, ORDINARY_BOARD_W = 25, 60, 700
INLET_SIGMA_MC, RESISTANCE_SIGMA_Q16, POWER_SIGMA_Q16 = 1_000, 2621, 1638  # 4 %, 2.5 %
IDLE_Q16 = 1311  # a device that is busy for less than 2 % of the time says that it idles
# Bits of nvmlClocksEventReasons.
IDLE, POWER_CAP, SLOWDOWN, THERMAL, TOO_HOT = 0x1, 0x4, 0x8, 0x20, 0x40


@dataclass(frozen=True)
class Load:
    """Shares of the time that devices are busy with something, Q16, (ranks,)."""

    arithmetic_q16: Ints
    memory_q16: Ints
    communication_q16: Ints


@dataclass(frozen=True)
class Boards:
    """What differs between devices, (ranks,) of int64; the spread is as between real ones.

    Attributes:
        inlet_mc: Temperature that a device without power would have, in 1/1000 degree.
        mc_per_w: How much warmer each watt makes it.
        limit_mw: What it may draw.
        power_q16: What it draws over others under the same load.
    """

    inlet_mc: Ints
    mc_per_w: Ints
    limit_mw: Ints
    power_q16: Ints


def boards(gpu: Gpu, gpus: Gpus, ranks: int, seed: int) -> Boards:
    """Return the boards of a job; the heat path of a smaller board is narrower."""
    which = np.arange(ranks)

    def spread(name: str, sigma: int) -> Ints:
        return noise.normal_q16(noise.keys(seed, "board", name, which), sigma)

    def each(found: dict[int, int], ordinary: int) -> Ints:
        return np.array([found.get(rank, ordinary) for rank in range(ranks)], np.int64)

    resistance = each(gpus.resistance_mc_per_w, ORDINARY_MC_PER_W) * ORDINARY_BOARD_W
    return Boards(
        inlet_mc=1000 * each(gpus.inlet_c, ORDINARY_INLET_C) + spread("inlet", INLET_SIGMA_MC),
        mc_per_w=(resistance // gpu.power_limit_w)
        * (ONE + spread("resistance", RESISTANCE_SIGMA_Q16))
        >> 16,
        limit_mw=1000 * each(gpus.power_limit_w, gpu.power_limit_w),
        power_q16=ONE + spread("power", POWER_SIGMA_Q16),
    )


class Clocks:
    """The clocks of a job's devices, from step to step.

    Attributes:
        clock_mhz: (ranks,), present.
        power_mw, temperature_mc: (ranks,), at the end of the last step.
        reasons: (ranks,), bits that NVML gives for them.
    """

    def __init__(self, gpu: Gpu, found: Boards) -> None:
        self._gpu, self._boards = gpu, found
        most = gpu.sm_clock_mhz
        self._table = np.arange(most, LEAST_CLOCK_MHZ - 1, -CLOCK_STEP_MHZ, dtype=np.int64)[::-1]
        self._fv2_q16 = fv2_q16(self._table * ONE // most)
        ranks = len(found.inlet_mc)
        self.clock_mhz = np.full(ranks, most, np.int64)
        self.power_mw = np.zeros(ranks, np.int64)
        self.temperature_mc = found.inlet_mc.copy()
        self.reasons = np.zeros(ranks, np.int64)
        self._cool = np.full(ranks, len(self._table) - 1, np.int64)  # clock that the heat allows
        self._since_ns = np.zeros(ranks, np.int64)

    @property
    def clock_q16(self) -> Ints:
        """Highest over present clock, (ranks,)."""
        return self._gpu.sm_clock_mhz * ONE // self.clock_mhz

    def settle(self, load: Load) -> None:
        """Go to where clocks and temperatures settle under a load that stays."""
        full_mw = self._full_mw(load)
        headroom = np.maximum(SETTLED_MC - self._boards.inlet_mc, 0)
        self._cool = self._allowed(full_mw, headroom * 1000 // self._boards.mc_per_w)
        allowed = self._allowed(full_mw, self._boards.limit_mw)
        self._choose(full_mw, allowed)
        self.temperature_mc = self._target_mc()
        self._explain(allowed, load)

    def advance(self, load: Load, took_ns: Ints) -> None:
        """Let a step pass that took so long, (ranks,), under a load."""
        full_mw = self._full_mw(load)
        allowed = self._allowed(full_mw, self._boards.limit_mw)
        self._choose(full_mw, allowed)
        warmer = self._target_mc() - self.temperature_mc
        self.temperature_mc = self.temperature_mc + warmer * took_ns // (TIME_CONSTANT_NS + took_ns)
        self._since_ns += took_ns
        steps, self._since_ns = self._since_ns // CONTROL_NS, self._since_ns % CONTROL_NS
        hot, cool = self.temperature_mc > HOT_MC, self.temperature_mc < COOL_MC
        self._cool = np.clip(self._cool + steps * (1 * cool - 1 * hot), 0, len(self._table) - 1)
        self._choose(full_mw, allowed)
        self._explain(allowed, load)

    def _full_mw(self, load: Load) -> Ints:
        """Power beyond idling that the load would draw at the highest clock."""
        board_mw = 1000 * (self._gpu.power_limit_w - self._gpu.idle_w)
        share_q16 = (
            ARITHMETIC_Q16 * load.arithmetic_q16
            + MEMORY_Q16 * load.memory_q16
            + COMMUNICATION_Q16 * load.communication_q16
        ) >> 16
        return (board_mw * share_q16 >> 16) * self._boards.power_q16 >> 16

    def _allowed(self, full_mw: Ints, limit_mw: Ints) -> Ints:
        """Index of the highest clock at which the load stays within a limit."""
        left = np.maximum(limit_mw - 1000 * self._gpu.idle_w, 0)
        found = np.searchsorted(self._fv2_q16, left * ONE // np.maximum(full_mw, 1), side="right")
        return np.maximum(found.astype(np.int64) - 1, 0)

    def _choose(self, full_mw: Ints, allowed: Ints) -> None:
        """Run at the highest clock (its index) that power and heat allow."""
        index = np.minimum(allowed, self._cool)
        self.clock_mhz = self._table[index]
        self.power_mw = 1000 * self._gpu.idle_w + (full_mw * self._fv2_q16[index] >> 16)

    def _explain(self, allowed: Ints, load: Load) -> None:
        last = len(self._table) - 1
        busy = load.arithmetic_q16 + load.memory_q16 + load.communication_q16
        too_hot = self.temperature_mc > TOO_HOT_MC
        self.reasons = (
            IDLE * (busy < IDLE_Q16)
            + POWER_CAP * (allowed < np.minimum(self._cool + 1, last))
            + THERMAL * (self._cool < last)
            + (SLOWDOWN + TOO_HOT) * too_hot
        )

    def _target_mc(self) -> Ints:
        return self._boards.inlet_mc + self._boards.mc_per_w * self.power_mw // 1000


def on_grid(clock_mhz: Ints, most_mhz: int) -> Ints:
    """Round clocks to those that a device has, which are 15 MHz apart.

    >>> on_grid(np.array([1972, 1990]), 1980).tolist()
    [1965, 1980]
    """
    below = (most_mhz - clock_mhz + CLOCK_STEP_MHZ // 2) // CLOCK_STEP_MHZ
    return most_mhz - np.maximum(below, 0) * CLOCK_STEP_MHZ


def fv2_q16(f_q16: Ints) -> Ints:
    """Return f * V**2 for a clock over its maximum, V = 0.7 + 0.3 f.

    >>> round(int(fv2_q16(np.array([52429]))[0]) / 65536, 3)  # 0.8 * 0.94**2
    0.707
    """
    v = V_LEAST_Q16 + ((ONE - V_LEAST_Q16) * f_q16 >> 16)
    return np.asarray((f_q16 * v >> 16) * v >> 16)
