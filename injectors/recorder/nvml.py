"""Samples GPUs through NVML; the only module that imports pynvml (nvidia-ml-py)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cases.errors import ScenarioError

KIB = 1024
ALL_LINKS = 0xFFFFFFFF  # a scope that makes NVML sum a counter over all NVLinks


class NvmlSampler:
    """Reads the columns of the `gpu` table from every device.

    What a device or driver does not support is None, never a guess.
    """

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._handles = [
            nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())
        ]

    @classmethod
    def open(cls, library: Path | None = None) -> NvmlSampler:
        """Start NVML, from the driver's library or the one given.

        Raises:
            ScenarioError: there is no nvidia-ml-py, library, driver, or permission.
        """
        try:
            import pynvml
        except ImportError:
            raise ScenarioError(
                "must have nvidia-ml-py to sample GPUs: pip install 'evalharness[record]'"
            ) from None
        try:
            if library is not None:
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
            pynvml.nvmlInit()
            return cls(pynvml)
        except (OSError, pynvml.NVMLError) as error:
            raise ScenarioError(f"must have an NVIDIA driver to sample GPUs ({error})") from None

    def close(self) -> None:
        """Stop NVML."""
        self._nvml.nvmlShutdown()

    def sample(self, time_ns: int) -> list[dict[str, Any]]:
        """Return one row a device; `rank` is the device's number."""
        return [
            {"rank": index, "time_ns": time_ns, **self._device(handle)}
            for index, handle in enumerate(self._handles)
        ]

    def _device(self, handle: Any) -> dict[str, Any]:
        n, ask = self._nvml, self._ask
        use = ask(n.nvmlDeviceGetUtilizationRates, handle)
        memory = ask(n.nvmlDeviceGetMemoryInfo, handle)
        milliwatts = ask(n.nvmlDeviceGetPowerUsage, handle)
        limit = ask(n.nvmlDeviceGetEnforcedPowerLimit, handle)
        sent = ask(n.nvmlDeviceGetPcieThroughput, handle, n.NVML_PCIE_UTIL_TX_BYTES)
        received = ask(n.nvmlDeviceGetPcieThroughput, handle, n.NVML_PCIE_UTIL_RX_BYTES)
        processes = ask(n.nvmlDeviceGetComputeRunningProcesses_v3, handle)
        return {
            "utilization_percent": None if use is None else float(use.gpu),
            "memory_utilization_percent": None if use is None else float(use.memory),
            "memory_used_bytes": None if memory is None else int(memory.used),
            "memory_total_bytes": None if memory is None else int(memory.total),
            "power_w": None if milliwatts is None else milliwatts / 1000,
            "power_limit_w": None if limit is None else limit / 1000,
            "sm_clock_mhz": ask(n.nvmlDeviceGetClockInfo, handle, n.NVML_CLOCK_SM),
            "memory_clock_mhz": ask(n.nvmlDeviceGetClockInfo, handle, n.NVML_CLOCK_MEM),
            "temperature_c": ask(n.nvmlDeviceGetTemperature, handle, n.NVML_TEMPERATURE_GPU),
            "event_reasons": ask(n.nvmlDeviceGetCurrentClocksEventReasons, handle),
            "pcie_tx_bytes_per_s": None if sent is None else sent * KIB,
            "pcie_rx_bytes_per_s": None if received is None else received * KIB,
            "pcie_generation": ask(n.nvmlDeviceGetCurrPcieLinkGeneration, handle),
            "pcie_width": ask(n.nvmlDeviceGetCurrPcieLinkWidth, handle),
            "nvlink_tx_bytes": self._nvlink(handle, n.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX),
            "nvlink_rx_bytes": self._nvlink(handle, n.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX),
            "processes": None if processes is None else len(processes),
        }

    def _ask(self, query: Callable[..., Any], *arguments: Any) -> Any:
        """Return a query's answer, None where it is not supported or not in the library."""
        try:
            return query(*arguments)
        except self._nvml.NVMLError:
            return None

    def _nvlink(self, handle: Any, field: int) -> int | None:
        """Return a counter of KiB, summed over all links, in bytes since the driver was loaded."""
        wanted = [(field, ALL_LINKS)]
        values = self._ask(self._nvml.nvmlDeviceGetFieldValues, handle, wanted)
        if not values or values[0].nvmlReturn != self._nvml.NVML_SUCCESS:
            return None
        return int(values[0].value.ullVal) * KIB
