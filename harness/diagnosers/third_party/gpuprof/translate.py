"""What gpuprof says, in the words of the taxonomy."""

from __future__ import annotations

from typing import Any

from cases.schema import Diagnosis
from harness.diagnosers.third_party.answers import GRADES, Said, answer

# By rule, from the texts of gpuprof/insights.py (0.7.1). None: what it names there lies in
# several domains, so that there is no name for it.
CAUSES: dict[str, str | None] = {
    "rule_dataloader_stall": "input_pipeline",
    "rule_prefetch_queue_starved": "input_pipeline",  # "Workers can't keep up with training"
    "rule_cpu_bound_dataloader": "dataloader_cpu_bound",
    "rule_io_bound_dataloader": "storage_fetch_stall",
    "rule_cold_cache": "storage_fetch_stall",
    "rule_cache_thrashing": "storage_fetch_stall",
    "rule_worker_imbalance": "slow_loader_worker",
    "rule_pcie_saturation": "host_to_device_copy",
    "rule_memory_pressure": "device_memory",
    "rule_thermal_throttling": "thermal_throttle",
    "rule_sdpa_suboptimal": "attention_backend_fallback",
    "rule_kernel_launch_overhead": "host_overhead",  # "many small ops or Python-side overhead"
    "rule_gradient_checkpointing_detected": "excess_work",  # recomputation, custom backward
    "rule_kernel_drift": "kernel_efficiency",
    "rule_low_mfu": None,
    "rule_small_batch": None,
    "rule_host_memory_pressure": None,  # "host RAM is oversubscribed"
    "rule_high_step_variance": None,  # "logging/checkpoint ..., Python GC pauses, ... workers"
    "rule_comm_dominant": None,
    "rule_regression": None,
}
# "Exclude steps 0-2 from throughput measurements"; "filter it from averages"; "info card"
NOTES = {"rule_compilation_warmup", "rule_first_step_outlier", "rule_cost_projection"}
NO_SKEW = "No rank skew detected"


def translate(raw: Any) -> Diagnosis:
    """Translate its insights by rank.

    It has no name for why a rank is slow ("uneven data, heterogeneous GPUs, PCIe topology, or a
    noisy neighbor"), which makes no answer healthy. Notes on how to measure are no findings.
    """
    found = [
        (int(rank), insight)
        for rank, insights in raw["ranks"].items()
        for insight in insights
        if insight["rule"] not in NOTES
    ]
    said = [
        Said(cause, GRADES[insight["severity"]], rank=rank)
        for rank, insight in found
        if (cause := CAUSES[insight["rule"]])
    ]
    clear = not found and all(title == NO_SKEW for title in raw["group"])
    return answer(
        said, ranks=len(raw["ranks"]), judged=bool(raw["ranks"]) and (bool(said) or clear)
    )
