"""nvsonar: samples of NVML by device, judged as its monitoring session judges them."""

from __future__ import annotations

from typing import Any

from cases.case import Case
from harness.diagnosers.third_party.adapter import Adapter
from harness.diagnosers.third_party.nvsonar.translate import OUTLIERS, PATTERNS, STATES, translate
from harness.diagnosers.third_party.rows import rows

SAMPLED = {
    "gpu_utilization": "utilization_percent",
    "memory_utilization": "memory_utilization_percent",
    "memory_used": "memory_used_bytes",
    "memory_total": "memory_total_bytes",
    "gpu_clock": "sm_clock_mhz",
    "memory_clock": "memory_clock_mhz",
    "temperature": "temperature_c",
    "power_usage": "power_w",
    "power_limit": "power_limit_w",
    "event_reasons": "event_reasons",
}


def inputs(case: Case) -> dict[str, Any]:
    """Give the samples by host and rank in order of time: one session sees one host's devices.

    What its record has and a recording has not (fans, ECC errors, the largest clock and link)
    stays empty.
    """
    hosts = {place.rank: place.host for place in case.info.topology.ranks}
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    known = ("rank", "time_ns")
    for row in rows(case.gpu, (*known, *SAMPLED.values()), known):
        sample = {name: row[column] for name, column in SAMPLED.items()}
        of_host = found.setdefault(hosts[row["rank"]], {})
        of_host.setdefault(str(row["rank"]), []).append(sample)
    return {"hosts": found}


diagnose = Adapter(
    "nvsonar",
    version=1,
    causes=tuple(
        cause for table in (STATES, PATTERNS, OUTLIERS) for cause in table.values() if cause
    ),
    translate=translate,
    needs={"signals": ["gpu"], "kinds": ["training", "inference"], "gpus": True},
    inputs=inputs,
)
