"""What NVML says of a device's power: the mean of the last quarter of each tenth of a second.

Source: Yang, Adamek, Armour, Part-time power measurements (SC 2024): on A100 and H100 readings
change every 100 ms and average the 25 ms before.
"""

from __future__ import annotations

import numpy as np

from injectors.sim import noise
from injectors.sim.noise import Ints
from injectors.sim.run import Run
from injectors.sim.tables.sampling import reader

UPDATE_NS, AVERAGED_NS = 100_000_000, 25_000_000
SENSOR_SIGMA_Q16 = 655  # 1 %
MOST_Q16 = 85197  # 1.3 of the limit, for an instant


def read_power_mw(run: Run, times_ns: Ints) -> Ints:
    """Return readings at `times_ns`, (ranks, samples)."""
    ranks, numbers = np.arange(times_ns.shape[0])[:, None], np.arange(times_ns.shape[1])
    phase = noise.scale_q16(
        noise.uniform_q16(noise.keys(run.job.seed, "power meter", ranks)), UPDATE_NS
    )
    until = np.maximum((times_ns - phase) // UPDATE_NS * UPDATE_NS + phase, AVERAGED_NS)
    ends, energy = _energy(run)
    used = reader(ends, until).read(energy) - reader(ends, until - AVERAGED_NS).read(energy)
    of = noise.keys(run.job.seed, "power sensor", ranks, numbers)
    return noise.scale_q16(used // AVERAGED_NS, noise.factor_q16(of, SENSOR_SIGMA_Q16))


def _energy(run: Run) -> tuple[Ints, Ints]:
    """Cut each step where its first batch has come: until then the device idles.

    Returns:
        Ends of the parts in ns, and their energy in mW * ns, (2 * steps, ranks) each. A step
        draws what its load asks for on average.
    """
    gpu = run.job.machine.gpu
    assert gpu is not None
    mean_mw = np.stack([state.power_mw for state in run.devices])
    took, ends = run.step_ns, run.marks["end"]
    begins = ends - took
    first = run.taken[:, 0] if run.program.batches else begins
    wait = np.clip(first - begins, 0, took * 9 // 10)
    idle_mw = 1000 * gpu.idle_w
    busy_mw = (mean_mw * took - idle_mw * wait) // np.maximum(took - wait, 1)
    busy_mw = np.clip(busy_mw, idle_mw, 1000 * gpu.power_limit_w * MOST_Q16 >> 16)
    parts = np.stack([begins + wait, ends], axis=1).reshape(2 * len(ends), -1)
    energy = np.stack([idle_mw * wait, busy_mw * (took - wait)], axis=1)
    return parts, energy.reshape(2 * len(ends), -1)
