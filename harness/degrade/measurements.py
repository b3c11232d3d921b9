"""Noise: what was measured is off by a factor of its own, more or less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from harness.degrade.copies import CaseCopy, RunCopy
from injectors.sim import noise
from injectors.sim.noise import Ints

# One factor a row: its parts must still add up.
BY_ROW: dict[str, tuple[str, ...]] = {
    "steps": (
        "duration_ns",
        "data_wait_ns",
        "forward_ns",
        "backward_ns",
        "optimizer_ns",
        "checkpoint_ns",
    ),
    "loader": ("fetch_ns", "read_ns", "cpu_ns"),
    "engine": ("duration_ns", "scheduler_ns"),
    "runtime": ("duration_ns",),
}
# One factor a value: each has a sensor of its own.
BY_VALUE: dict[str, tuple[str, ...]] = {
    "gpu": (
        "utilization_percent",
        "memory_utilization_percent",
        "power_w",
        "sm_clock_mhz",
        "temperature_c",
        "pcie_tx_bytes_per_s",
        "pcie_rx_bytes_per_s",
        "nvlink_tx_bytes",
        "nvlink_rx_bytes",
    ),
    "host": (
        "cpu_busy_ns",
        "cpu_system_ns",
        "cpu_iowait_ns",
        "cpu_steal_ns",
        "psi_cpu_some_ns",
        "psi_io_some_ns",
        "psi_memory_some_ns",
        "memory_available_bytes",
        "memory_bandwidth_bytes_per_s",
        "disk_read_bytes",
        "disk_write_bytes",
        "cgroup_throttled_ns",
    ),
    "network": ("tx_bytes", "rx_bytes", "retransmits", "send_queue_bytes"),
    "processes": (
        "cpu_ns",
        "run_delay_ns",
        "voluntary_switches",
        "involuntary_switches",
        "read_bytes",
        "write_bytes",
        "rss_bytes",
    ),
    "jobs": (
        "throughput",
        "step_ns",
        "compute_ns",
        "communication_ns",
        "copy_ns",
        "data_wait_ns",
        "loader_read_ns",
        "loader_cpu_ns",
        "tensor_active_percent",
        "sm_clock_mhz",
        "temperature_c",
        "power_w",
        "pcie_rx_bytes_per_s",
    ),
}
# Times that lie as far behind the first one as that took, by one factor a row.
SINCE: dict[str, tuple[str, tuple[str, ...]]] = {
    "collectives": ("created_ns", ("started_ns", "completed_ns")),
    "requests": ("arrival_ns", ("scheduled_ns", "first_token_ns", "finished_ns")),
}
MOST_PERCENT = 100.0


def measurement_noise(copy: CaseCopy, level: float, seed: int) -> CaseCopy:
    """Multiply measurements by factors of mean 1, drawn for each; traces stay as they are.

    The same draws at every level, times the level. The reference run has other draws.

    Args:
        copy: The case.
        level: Standard deviation of the factors.
        seed: Of the factors.
    """
    if not {*BY_ROW, *BY_VALUE, *SINCE} & copy.run.signals:
        return copy
    key, sigma_q16 = noise.key(seed, "noise", copy.info.id), int(level * noise.ONE_Q16)
    earlier = copy.reference and _noisy(copy.reference, noise.key(key, "reference"), sigma_q16)
    return copy.with_runs(_noisy(copy.run, noise.key(key, "run"), sigma_q16), earlier)


def _noisy(run: RunCopy, key: int, sigma_q16: int) -> RunCopy:
    names = [name for name in run.tables if name in {*BY_ROW, *BY_VALUE, *SINCE}]
    frames = {name: noisy(name, run.frame(name), noise.key(key, name), sigma_q16) for name in names}
    return run.with_tables(frames)


def noisy(name: str, frame: pd.DataFrame, key: int, sigma_q16: int) -> pd.DataFrame:
    """Return a table with noise, drawn by `key` with deviation `sigma_q16`."""
    rows = np.arange(len(frame))
    row = noise.factor_q16(noise.extend(key, rows), sigma_q16)
    changed = {column: scaled(frame[column], row) for column in BY_ROW.get(name, ())}
    for column in BY_VALUE.get(name, ()):
        changed[column] = scaled(
            frame[column], noise.factor_q16(noise.extend(key, column, rows), sigma_q16)
        )
        if column.endswith("_percent"):
            changed[column] = changed[column].clip(upper=MOST_PERCENT)
    if name in SINCE:
        first, later = SINCE[name]
        for column in later:
            changed[column] = frame[first] + scaled(frame[column] - frame[first], row)
    return frame.assign(**changed)


def scaled(values: pd.Series[Any], factor_q16: Ints) -> pd.Series[Any]:
    """Multiply by Q16 factors; whole numbers are rounded, and what is missing stays missing.

    >>> scaled(pd.Series([10**15, None], dtype="Int64"), np.array([98304, 1])).tolist()
    [1500000000000000, <NA>]
    """
    if pd.api.types.is_float_dtype(values.dtype):
        return values * (factor_q16 / noise.ONE_Q16)
    # In two halves: bytes times a factor would not fit into 64 bits.
    high, low = values // noise.ONE_Q16, values % noise.ONE_Q16
    return high * factor_q16 + (low * factor_q16 + noise.ONE_Q16 // 2) // noise.ONE_Q16
