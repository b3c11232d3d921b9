"""Rules for jobs without a reference run: what is wrong by itself, or differs between ranks."""

from __future__ import annotations

from harness.diagnosers.rules.rule import Rule

AUDITS: tuple[Rule, ...] = (
    Rule(
        "cgroup_cpu_throttle",
        lambda f: f["throttled.now"] > 0.05,
        cites=("throttled.max",),
        scope="rank",
        place="worker_delay",
        rivals=(("cpu_contention_colocated", "a quota holds the job back, not another process"),),
    ),
    Rule(
        "gpu_noisy_neighbor",
        lambda f: f["users.spread"] >= 1,
        cites=("users.max",),
        scope="gpu",
        place="users",
    ),
    Rule(
        "thermal_throttle",
        lambda f: f["hot.spread"] > 0.3,
        cites=("hot.max",),
        scope="gpu",
        place="hot",
        rivals=(("power_cap", "the thermal bits are set"),),
    ),
    Rule(
        "power_cap",
        lambda f: f["capped.spread"] > 0.5,
        cites=("capped.max",),
        scope="gpu",
        place="capped",
        rivals=(("thermal_throttle", "no thermal bit is set"),),
    ),
    Rule(
        "cpu_contention_colocated",
        lambda f: f["foreign.now"] > 1 and f["worker_delay.now"] > 0.3,
        cites=("foreign.max", "worker_delay.max"),
        scope="host",
        place="foreign",
    ),
    Rule(
        "worker_affinity_pinned",
        lambda f: f["worker_delay.now"] > 0.5 and f["data_wait.now"] + f["data_wait.spread"] > 0.05,
        cites=("worker_delay.max",),
        rivals=(("cpu_contention_colocated", "nobody else uses the cores"),),
    ),
    Rule(
        "python_gc_pause",
        lambda f: f["collected.spread"] > 0.05,
        cites=("collected.max",),
        scope="rank",
        place="collected",
    ),
    Rule(
        "recompilation_churn",
        lambda f: f["recompiles.now"] > 0.05 and f["recompiled.now"] > 0.03,
        cites=("recompiles.max",),
    ),
    Rule(
        "slow_loader_worker",
        lambda f: f["uneven_workers.spread"] > 1,
        cites=("uneven_workers.max",),
        scope="worker",
        place="uneven_workers",
    ),
    Rule(
        "debug_env_left_on",
        lambda f: f["job.checks"] > 2,
        cites=("job.checks",),
        rivals=(("host_device_sync", "values are checked for NaN"),),
    ),
    Rule(
        "sync_checkpoint",
        lambda f: f["checkpoint.now"] + f["checkpoint.spread"] > 0.05,
        cites=("checkpoint.max",),
        scope="rank",
        place="checkpoint",
    ),
    Rule(
        "storage_fetch_stall",
        lambda f: f["read_share.now"] > 0.6 and f["data_wait.now"] + f["data_wait.spread"] > 0.05,
        cites=("read_share.max",),
        rivals=(("dataloader_cpu_bound", "workers wait in reads"),),
    ),
    Rule(
        "sequence_length_imbalance",
        lambda f: f["length_spread.now"] > 0.5 and f["length_share.spread"] > 0.2,
        cites=("length_spread.median",),
    ),
    Rule(
        "padding_waste",
        lambda f: f.level("padded") > 1.04,
        cites=("padded.median",),
        rivals=(("kernel_regression", "more tokens are computed than sequences have"),),
    ),
    Rule(
        "foreach_disabled",
        lambda f: f["job.updates"] < 0.01 * f["job.kernels"] and f["optimizer.now"] > 0.05,
        cites=("job.updates",),
        rivals=(("kernel_launch_bound", "it is the optimizer that launches one by one"),),
    ),
)
