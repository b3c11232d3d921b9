"""Metrics of GPUs, from NVML's samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cases.case import Recording
from harness.diagnosers.features.arrays import Columns, by_rank, floats_of

HOT_BITS, POWER_BIT = 0x60, 0x4


def device_metrics(run: Recording, ranks: Sequence[int], step_ns: float) -> Columns:
    """Return a number a rank; `step_ns` turns rates into amounts of a step."""
    table = run.arrow("gpu")
    groups = by_rank(table, ranks)

    def mean(name: str) -> np.ndarray:
        return groups.mean(floats_of(table, name))

    def most(name: str) -> np.ndarray:
        return groups.most(floats_of(table, name))

    reasons, time = floats_of(table, "event_reasons"), floats_of(table, "time_ns")
    bits = np.nan_to_num(reasons).astype(np.int64)
    length = groups.most(time) - groups.least(time)
    return {
        "clock": mean("sm_clock_mhz"),
        "power": mean("power_w"),
        "power_limit": most("power_limit_w"),
        "temperature": mean("temperature_c"),
        "hot": groups.mean(np.where(np.isnan(reasons), np.nan, (bits & HOT_BITS) > 0)),
        "capped": groups.mean(np.where(np.isnan(reasons), np.nan, (bits & POWER_BIT) > 0)),
        "users": groups.median(floats_of(table, "processes")),
        "utilization": mean("utilization_percent"),
        "memory_used": most("memory_used_bytes") / most("memory_total_bytes"),
        "pcie_lanes": most("pcie_generation") * most("pcie_width"),
        "pcie_rx": mean("pcie_rx_bytes_per_s") * step_ns / 1e9,
        "nvlink": most("nvlink_tx_bytes") / length * step_ns,
    }
