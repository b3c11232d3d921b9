"""Rules for jobs on CPU cores alone, where neighbours take a share of very few cores."""

from __future__ import annotations

from harness.diagnosers.features.facts import Facts
from harness.diagnosers.rules.rule import Rule

WAITS = 0.1


def _waits(f: Facts) -> bool:
    return f["delay.max"] > WAITS or f["worker_delay.max"] > 5 * WAITS


NEIGHBOURS: tuple[Rule, ...] = (
    Rule(
        "cpu_contention_colocated",
        lambda f: f["foreign.max"] > f.busy and _waits(f),
        cites=("foreign.max", "delay.max"),
        scope="rank",
        place="=delay",
        rivals=(("memory_bandwidth_contention", "the job's processes wait for cores"),),
    ),
    Rule(
        "memory_bandwidth_contention",
        lambda f: f["foreign.max"] > f.busy,
        cites=("foreign.max",),
        rivals=(("cpu_contention_colocated", "no process of the job waits for a core"),),
        sure=0.8,
    ),
)
LOADING: tuple[Rule, ...] = (
    Rule(
        "dataloader_cpu_bound",
        lambda f: f["decode.min"] > 2 and f["read_share.now"] < 0.5,
        cites=("decode.median", "data_wait.median"),
        rivals=(("storage_fetch_stall", "the time is not in reads"),),
    ),
)
OPERATORS: tuple[Rule, ...] = (
    Rule(
        "attention_backend_fallback",
        lambda f: f["job.attention_operators.growth"] < 0.9,
        cites=("job.operators.growth",),
        rivals=(("unfused_kernels", "attention is what is not fused"),),
    ),
    Rule(
        "kernel_launch_bound",
        lambda f: f["job.matrix_operators.growth"] > 1.5 and f["recompiles.max"] < 0.02,
        cites=("job.operators.growth",),
        rivals=(("unfused_kernels", "products are more, too: batches were cut"),),
    ),
    Rule(
        "foreach_disabled",
        lambda f: f["job.operators.growth"] > 1.1 and f["optimizer.median"] > 0.05,
        cites=("optimizer.median", "job.operators.growth"),
        rivals=(("unfused_kernels", "the optimizer's operators are the ones that multiplied"),),
    ),
    Rule(
        "unfused_kernels",
        lambda f: (f["job.operators.growth"] > 1.1 and f["bytes.median"] != f["bytes.median"])
        or (f["job.operators.growth"] > 1.1 and f["bytes.median"] < 1.2),
        cites=("job.operators.growth",),
        rivals=(("kernel_launch_bound", "as many products run"),),
    ),
)  # fmt: skip
LINKS: tuple[Rule, ...] = (
    Rule(
        "slow_link",
        lambda f: (
            f["job.transfer_growth"] > 1.5 and f["transfer.median"] > 0.25 * (f["slowdown"] - 1)
        ),
        cites=("job.transfer_growth",),
        scope="link",
        place="queue_all",
        rivals=(("network_congestion", "transfers are longer in all steps"),),
        sure=0.8,
    ),
)
