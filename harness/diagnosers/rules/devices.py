"""Rules on GPUs: what NVML says of the one device that keeps the others waiting."""

from __future__ import annotations

from harness.diagnosers.rules.rule import Rule

SLOWER_CLOCK = 0.985

DEVICES: tuple[Rule, ...] = (
    Rule(
        "idle_device_misconfig",
        lambda f: f["users.min"] <= -1 and f["users.max"] >= 1,
        cites=("users.min", "users.max"),
        scope="gpu",
        place="-users",
        rivals=(("gpu_noisy_neighbor", "the further process is one that another device lacks"),),
    ),
    Rule(
        "gpu_noisy_neighbor",
        lambda f: f["users.max"] >= 1,
        cites=("users.max",),
        scope="gpu",
        place="users",
        rivals=(("idle_device_misconfig", "no device lacks a process"),),
    ),
    Rule(
        "thermal_throttle",
        lambda f: f["hot.max"] > 0.3 and f["clock.min"] < SLOWER_CLOCK,
        cites=("hot.max", "clock.min"),
        scope="gpu",
        place="hot",
        rivals=(("power_cap", "the thermal bits are set, and the limit is what it was"),),
    ),
    Rule(
        "power_cap",
        lambda f: f["power_limit.min"] < 0.97 and f["clock.min"] < SLOWER_CLOCK,
        cites=("power_limit.min", "clock.min"),
        scope="gpu",
        place="-power_limit",
        rivals=(("thermal_throttle", "no thermal bit is set"),),
    ),
    Rule(
        "gpu_silicon_variability",
        lambda f: f["clock.min"] < 0.97 * (f["clock.median"] if f["ranks"] > 1 else 1),
        cites=("clock.min",),
        scope="gpu",
        place="-clock",
        rivals=(
            ("thermal_throttle", "no thermal bit is set"),
            ("power_cap", "the limit is what it was"),
        ),
    ),
    Rule(
        "allocator_retry_fragmentation",
        lambda f: f["retries.max"] > 0.04,
        cites=("retries.max", "memory_used.max"),
        rivals=(("vram_sysmem_spill", "the allocator frees and asks again"),),
    ),
    Rule(
        "vram_sysmem_spill",
        lambda f: f["memory_used.median"] > 0.05 and f["memory_used.now"] > 0.97,
        cites=("memory_used.max",),
        rivals=(("allocator_retry_fragmentation", "the allocator never retries"),),
    ),
    Rule(
        "pcie_downgrade",
        lambda f: f["pcie_lanes.min"] < 0.9,
        cites=("pcie_lanes.min",),
        scope="gpu",
        place="-pcie_lanes",
        rivals=(("nvlink_degraded", "the lanes of one device's PCIe link are fewer"),),
    ),
)
