"""Metrics of GPUs, from NVML's samples."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cases.case import Recording
from harness.diagnosers.features.arrays import column, floats, rank_of

HOT_BITS, POWER_BIT = 0x60, 0x4
NAMES = (
    *("utilization_percent", "memory_used_bytes", "memory_total_bytes", "power_w"),
    *("power_limit_w", "sm_clock_mhz", "temperature_c", "pcie_rx_bytes_per_s"),
    *("pcie_generation", "pcie_width", "nvlink_tx_bytes", "processes", "time_ns"),
)


def device_metrics(run: Recording, step_ns: float) -> pd.DataFrame:
    """Return one row a rank; `step_ns` turns rates into amounts of a step."""
    frame = run.gpu
    if not len(frame):
        return pd.DataFrame()
    values, rank = floats(frame, NAMES), rank_of(frame)
    reasons = column(frame, "event_reasons")
    bits = np.nan_to_num(reasons).astype(np.int64)
    values["hot"] = np.where(np.isnan(reasons), np.nan, (bits & HOT_BITS) > 0)
    values["capped"] = np.where(np.isnan(reasons), np.nan, (bits & POWER_BIT) > 0)
    groups = values.groupby(rank)
    means, most = groups.mean(), groups.max()
    length = groups["time_ns"].max() - groups["time_ns"].min()
    return pd.DataFrame(
        {
            "clock": means["sm_clock_mhz"],
            "power": means["power_w"],
            "power_limit": most["power_limit_w"],
            "temperature": means["temperature_c"],
            "hot": means["hot"],
            "capped": means["capped"],
            "users": groups["processes"].median(),
            "utilization": means["utilization_percent"],
            "memory_used": most["memory_used_bytes"] / most["memory_total_bytes"],
            "pcie_lanes": most["pcie_generation"] * most["pcie_width"],
            "pcie_rx": means["pcie_rx_bytes_per_s"] * step_ns / 1e9,
            "nvlink": most["nvlink_tx_bytes"] / length * step_ns,
        }
    )
