"""What nvsonar says, in the words of the taxonomy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.schema import Diagnosis
from harness.diagnosers.third_party.answers import GRADES, Said, answer

# The states of nvsonar/analysis/bottleneck.py (2.4.0). None: it names no cause.
STATES: dict[str, str | None] = {
    "thermal_throttled": "thermal_throttle",
    "power_limited": "power_cap",
    "memory_capacity_bound": "device_memory",  # "VRAM full, OOM risk"
    "data_starved": "input_pipeline",  # first advice: "Increase DataLoader num_workers"
    "idle": None,  # "GPU has no active workload"
}
HEALTHY = {"compute_bound", "memory_bandwidth_bound", "balanced"}
NOTHING = "unknown"  # "GPU metrics unavailable, cannot classify workload"
# The patterns of nvsonar/analysis/temporal.py.
PATTERNS: dict[str, str | None] = {
    "clock_oscillation": "gpu_clocks",  # "bouncing between throttled and boost"
    "throttle_cycling": "gpu_clocks",  # "intermittent throttling"
    "utilization_dips": "input_pipeline",  # "likely data loading or CPU bottleneck"
    "temperature_rising": None,
    "memory_creep": None,  # "possible memory leak"
}
# What a device stands out in among its host's (nvsonar/analysis/outlier.py).
OUTLIERS: dict[str, str | None] = {
    "gpu_clock": "gpu_clocks",  # "check throttling"
    "gpu_utilization": None,  # "straggler GPU"
    "temperature": None,  # "possible cooling issue"
    "power_draw": None,
    "memory_used": None,
    "ecc_errors": None,
}


def translate(raw: Any) -> Diagnosis:
    """Translate state, patterns and outliers of each rank's device.

    A device whose state it cannot tell is not judged. Patterns and outliers without a name in the
    taxonomy make no answer healthy.
    """
    judged = {int(rank): said for rank, said in raw.items() if said["state"] != NOTHING}
    said = [one for rank, found in judged.items() for one in _said(rank, found)]
    clear = all(_is_clear(found) for found in judged.values())
    return answer(said, ranks=len(judged), judged=bool(judged) and (bool(said) or clear))


def _said(rank: int, found: dict[str, Any]) -> Iterator[Said]:
    if found["state"] not in HEALTHY and (cause := STATES[found["state"]]):
        yield Said(cause, found["confidence"], rank=rank)
    for pattern in found["patterns"]:
        if cause := PATTERNS[pattern["name"]]:
            yield Said(cause, GRADES[pattern["severity"]], rank=rank)
    for outlier in found["outliers"]:
        if cause := OUTLIERS[outlier["metric"]]:
            yield Said(cause, GRADES[outlier["severity"]], rank=rank)


def _is_clear(found: dict[str, Any]) -> bool:
    return found["state"] in HEALTHY and not found["patterns"] and not found["outliers"]
