"""Clock, power and temperature of a GPU under load.

power = idle + silicon * load * clock**2, where load is what the model draws at full clock and
clock a fraction. The board's power limit, or the power at which the chip reaches its temperature
limit, caps it; temperature = inlet + resistance * power. Leakage grows with the inlet's
temperature, which is what makes fleets 1 to 2 % slower in the afternoon (Llama 3, 2024).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from injectors.fleet.fleet import DAY_NS, HOUR_NS
from injectors.sim import noise
from injectors.sim.noise import Ints

INLET_MC = 24_000
# The day's course around the mean, every three hours from midnight, in milli-degrees.
COURSE_MC = np.array([-2200, -2900, -2500, -400, 2000, 2900, 2200, 400, -2200], dtype=np.int64)
WEATHER_MC_Q16 = 500 * noise.ONE_Q16
HEATING_MC = 46_000  # above the inlet, at the power limit
LIMIT_MC = 85_000
LEAK_PER_DEGREE_Q16 = 393  # 0.6 %
LEAST_CLOCK_Q16 = noise.ONE_Q16 // 4
POWER_CAP_BIT, THERMAL_BIT = 0x4, 0x20  # NVML: software power cap, software thermal slowdown


@dataclass(frozen=True)
class Limits:
    """What bounds each GPU; arrays of one shape.

    Attributes:
        inlet_mc: Air temperature, milli-degrees.
        resistance: Heating, milli-degrees per watt.
        silicon_q16: Power needed at a clock, over that of an average chip.
        load_w: Power above idle that an average chip would draw at full clock.
    """

    inlet_mc: Ints
    resistance: Ints
    silicon_q16: Ints
    load_w: Ints
    idle_w: Ints
    limit_w: Ints


@dataclass(frozen=True)
class Clocks:
    """What comes of the limits: clock as a fraction, power, temperature, event reasons."""

    clock_q16: Ints
    power_w: Ints
    temperature_c: Ints
    reasons: Ints


def inlet_mc(key: int, time_ns: Ints, excess_q16: Ints) -> Ints:
    """Air temperature at a time of the period: the day's course, weather, and an excess factor.

    `excess_q16` scales what the air is warmer than 20 degrees on average.
    """
    inside = time_ns % DAY_NS
    step = inside // (3 * HOUR_NS)
    low, high = COURSE_MC[step], COURSE_MC[step + 1]
    course = low + (high - low) * (inside % (3 * HOUR_NS) // 10**9) // (3 * 3600)
    weather = noise.normal_q16(noise.keys(key, "weather", time_ns // DAY_NS), WEATHER_MC_Q16) >> 16
    return 20_000 + noise.scale_q16(INLET_MC - 20_000, excess_q16) + course + weather


def settle(limits: Limits) -> Clocks:
    """Return where each GPU's clock settles."""
    leak = noise.ONE_Q16 + (limits.inlet_mc - INLET_MC) * LEAK_PER_DEGREE_Q16 // 1000
    full_w_q16 = noise.scale_q16(limits.silicon_q16, leak) * limits.load_w
    cool_w = (LIMIT_MC - limits.inlet_mc) // limits.resistance
    head_w = np.maximum(np.minimum(limits.limit_w, cool_w) - limits.idle_w, 1)
    square_q32 = (head_w << 48) // full_w_q16
    clock = np.clip(_root(square_q32), LEAST_CLOCK_Q16, noise.ONE_Q16)
    drawn_w = limits.idle_w + (noise.scale_q16(full_w_q16, clock) * clock >> 32)
    capped = clock < noise.ONE_Q16
    hot = capped & (cool_w < limits.limit_w)
    return Clocks(
        clock_q16=clock,
        power_w=drawn_w,
        temperature_c=(limits.inlet_mc + limits.resistance * drawn_w + 500) // 1000,
        reasons=np.where(hot, THERMAL_BIT, np.where(capped, POWER_CAP_BIT, 0)),
    )


def _root(square_q32: Ints) -> NDArray[np.int64]:
    # Correctly rounded everywhere: the argument is below 2**53.
    return np.sqrt(np.minimum(square_q32, 2**52).astype(np.float64)).astype(np.int64)
