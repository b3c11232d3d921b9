"""Rules on the model and the framework: what a step does that it did not, by counts."""

from __future__ import annotations

from harness.diagnosers.features.facts import Facts
from harness.diagnosers.rules.rule import Rule


def _more(f: Facts, name: str, least: float) -> bool:
    return f[f"job.{name}.growth"] > least


EVENTS: tuple[Rule, ...] = (
    Rule(
        "python_gc_pause",
        lambda f: f["collected.max"] > 0.4 * (f["slowdown"] - 1),
        cites=("collected.max",),
        scope="rank",
        place="collected",
        rivals=(("process_suspended", "the pauses are collections"),),
    ),
    Rule(
        "recompilation_churn",
        lambda f: f["recompiles.max"] > 0.02,
        cites=("recompiles.max",),
        rivals=(("recompile_limit_eager_fallback", "the compiler still compiles"),),
    ),
    Rule(
        "recompile_limit_eager_fallback",
        lambda f: f["said.left_eager.new"] > 0,
        cites=("said.left_eager.new",),
        rivals=(("unfused_kernels", "the compiler says that it gave functions up"),),
    ),
    Rule(
        "autotune_per_shape",
        lambda f: f["job.first_over_repeat.growth"] > 1.3,
        cites=("forward_spike.median",),
        rivals=(("python_gc_pause", "passes are long for sizes not seen before"),),
    ),
    Rule(
        "moe_expert_imbalance",
        lambda f: f["expert_share.max"] > 0.2,
        cites=("expert_share.max",),
        scope="rank",
        place="expert_share",
        rivals=(("network_congestion", "one rank's experts get more tokens"),),
    ),
    Rule(
        "embedding_shard_imbalance",
        lambda f: f["embedding_share.max"] > 0.15,
        cites=("embedding_share.max",),
        scope="rank",
        place="embedding_share",
        rivals=(("network_congestion", "one rank is asked for more rows"),),
    ),
    Rule(
        "padding_waste",
        lambda f: f["padded.median"] > 1.04,
        cites=("padded.median",),
        rivals=(("kernel_regression", "more tokens are computed than sequences have"),),
    ),
    Rule(
        "sequence_length_imbalance",
        lambda f: f["length_spread.median"] > 0.15,
        cites=("length_spread.median",),
        rivals=(("kernel_regression", "lengths differ from step to step and rank to rank"),),
    ),
)
COUNTS: tuple[Rule, ...] = (
    Rule(
        "debug_env_left_on",
        lambda f: f["job.checks"] > 2 and _more(f, "checks", 2),
        cites=("job.checks.growth",),
        rivals=(("host_device_sync", "values are checked for NaN"),),
    ),
    Rule(
        "kernel_launch_bound",
        lambda f: _more(f, "products", 1.5) and _more(f, "kernels", 1.4),
        cites=("job.products.growth", "job.kernels.growth"),
        rivals=(("unfused_kernels", "products are more, too: batches were cut"),),
    ),
    Rule(
        "host_device_sync",
        lambda f: _more(f, "value_reads", 1.5) and _more(f, "stream_waits", 1.5),
        cites=("job.value_reads.growth", "job.stream_waits.growth"),
        rivals=(("kernel_launch_bound", "as many products run"),),
    ),
    Rule(
        "foreach_disabled",
        lambda f: f["job.updates.growth"] < 0.9 and _more(f, "kernels", 1.03),
        cites=("job.updates.growth", "optimizer.median"),
        rivals=(("unfused_kernels", "the optimizer's kernels are the ones that multiplied"),),
    ),
    Rule(
        "attention_backend_fallback",
        lambda f: f["job.fused_attention.growth"] < 0.95 and _more(f, "attention_operators", 0.99),
        cites=("job.fused_attention.growth",),
        rivals=(("unfused_kernels", "attention is what is not fused"),),
    ),
    Rule(
        "precision_fallback",
        lambda f: f["job.wide_products.growth"] > 1.2,
        cites=("job.wide_products.growth",),
        rivals=(("kernel_regression", "products run in wider numbers"),),
    ),
    Rule(
        "unfused_kernels",
        lambda f: _more(f, "kernels", 1.08) and f["job.products.growth"] < 1.1,
        cites=("job.kernels.growth",),
        rivals=(("recompile_limit_eager_fallback", "no function hit the compiler's limit"),),
    ),
    Rule(
        "excessive_small_collectives",
        lambda f: f["small_calls.median"] > 10,
        cites=("small_calls.median",),
        rivals=(("undersized_buckets", "those that were there are as large as before"),),
    ),
    Rule(
        "comm_overlap_lost",
        lambda f: (
            f["job.hidden_share.growth"] < 0.35
            and f["job.transfer_growth"] < 1.06
            and not f["asked_late_least.max"] > 0.3 * (f["slowdown"] - 1)
        ),
        cites=("job.hidden_share.growth",),
        rivals=(("slow_link", "transfers are no longer; nothing hides them"),),
    ),
    Rule(
        "grad_sync_every_microbatch",
        lambda f: f["bytes.median"] > 1.4 and f["calls.median"] > 1.4,
        cites=("bytes.median", "calls.median"),
        rivals=(("excessive_small_collectives", "the bytes multiplied, too"),),
    ),
    Rule(
        "undersized_buckets",
        lambda f: f["calls.median"] > 1.3 and 0.8 < f["bytes.median"] < 1.25,
        cites=("calls.median", "bytes.median"),
        rivals=(("grad_sync_every_microbatch", "as many bytes go in more calls"),),
    ),
)
STAGES: tuple[Rule, ...] = (
    Rule(
        "pp_stage_imbalance",
        lambda f: f.stages["computing"] > 0.05 and f.stages["computing_least"] < -0.02,
        cites=("computing.max",),
        scope="stage",
        place="computing",
        rivals=(("kernel_regression", "other stages compute less"),),
    ),
)
KERNELS: tuple[Rule, ...] = (
    Rule(
        "kernel_regression",
        lambda f: f["job.kernel_most"] > 1.1 * f["job.kernel_usual"],
        cites=("job.kernel_most",),
        rivals=(("thermal_throttle", "clocks are what they were, and most kernels are"),),
    ),
)
HOST_TIME: tuple[Rule, ...] = (
    Rule(
        "blocking_metric_io",
        lambda f: f["gap_spike.max"] > 0.4 * (f["slowdown"] - 1),
        cites=("gap_spike.max",),
        scope="rank",
        place="gap_spike",
        rivals=(("process_suspended", "the time is in no phase, always as many steps apart"),),
    ),
    Rule(
        "rank_extra_host_work",
        lambda f: f["asked_late_least.max"] > 0.3 * (f["slowdown"] - 1),
        cites=("asked_late_least.max",),
        scope="rank",
        place="asked_late_least",
        rivals=(("process_suspended", "the rank is late in every step, not in a few"),),
        sure=0.7,
    ),
)
