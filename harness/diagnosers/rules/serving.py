"""Rules on inference servers: what an engine's steps hold, and what its host does between them."""

from __future__ import annotations

from harness.diagnosers.rules.rule import Rule

SERVING: tuple[Rule, ...] = (
    Rule(
        "kv_cache_preemption",
        lambda f: f["job.preemptions_in_step"] > 0 and f["job.preemptions_in_step.growth"] > 2,
        cites=("job.preemptions_in_step",),
        rivals=(("decode_batch_kv_limited", "requests are evicted, not only kept waiting"),),
    ),
    Rule(
        "prefix_cache_routing_miss",
        lambda f: f["job.hit_share.growth"] < 0.75,
        cites=("job.hit_share",),
        rivals=(("kernel_regression", "prompts that were found in the cache no longer are"),),
    ),
    Rule(
        "kv_cache_disabled",
        lambda f: f["job.prefill_in_step.growth"] > 4,
        cites=("job.prefill_in_step",),
        rivals=(("prefix_cache_routing_miss", "more is computed anew than prompts hold"),),
    ),
    Rule(
        "spec_decode_overhead",
        lambda f: f["job.drafted_in_step.growth"] > 1.5 or f["job.accepted_share.growth"] < 0.75,
        cites=("job.accepted_share",),
        rivals=(("kernel_regression", "fewer drafted tokens are accepted, or more are drafted"),),
    ),
    Rule(
        "jit_during_serving",
        lambda f: (
            f["recompiles.max"] > 0
            or (f["job.scheduler_time.growth"] > 1.5 and f["job.scheduler_spread.growth"] < 0.5)
        ),
        cites=("job.scheduler_time",),
        rivals=(("engine_cpu_bound", "a few steps are very long, the others are not"),),
    ),
    Rule(
        "unbatched_decoding",
        lambda f: f["job.running.growth"] < 0.7 and f["job.kv_usage.growth"] < 0.75,
        cites=("job.running",),
        rivals=(("decode_batch_kv_limited", "the cache is emptier while requests wait"),),
    ),
    Rule(
        "decode_batch_kv_limited",
        lambda f: f["job.running.growth"] < 0.9 and f["job.waiting.growth"] > 1.5,
        cites=("job.running", "job.waiting"),
        rivals=(("unbatched_decoding", "the cache is as full as before"),),
    ),
    Rule(
        "structured_output_cpu_bound",
        lambda f: f["job.scheduler_time.growth"] > 1.5 and f["job.scheduler_spread.growth"] > 1.2,
        cites=("job.scheduler_time",),
        rivals=(("engine_cpu_bound", "the host is slow in some steps, not in all"),),
        sure=0.7,
    ),
    Rule(
        "engine_cpu_bound",
        lambda f: f["job.scheduler_time.growth"] > 1.5,
        cites=("job.scheduler_time",),
        rivals=(("structured_output_cpu_bound", "the host is slow in all steps alike"),),
        sure=0.7,
    ),
    Rule(
        "prefill_decode_interference",
        lambda f: f["job.mixed_share.growth"] < 0.7 or f["job.mixed_longer.growth"] > 1.5,
        cites=("job.token_time",),
        rivals=(("kernel_regression", "steps without a prompt's tokens take what they did"),),
        sure=0.7,
    ),
)
