"""Numbers of inference servers: latencies of requests, and what engines' steps hold."""

from __future__ import annotations

import numpy as np

from cases.case import Recording
from harness.diagnosers.features.arrays import Groups, frame_of, reduced, texts_of

REQUESTS = (
    *("arrival_ns", "scheduled_ns", "first_token_ns", "finished_ns"),
    *("prompt_tokens", "generation_tokens", "cached_tokens", "preemptions"),
)
ENGINE = (
    *("duration_ns", "scheduler_ns", "num_requests_running", "num_requests_waiting"),
    *("kv_cache_usage", "prefill_tokens", "decode_tokens", "num_preemptions"),
    *("prefix_cache_queries", "prefix_cache_hits", "draft_tokens", "accepted_tokens"),
)


def serving_numbers(run: Recording) -> dict[str, float]:
    """Return means over requests and over engine steps; nothing for a job that trains."""
    return _requests(run) | _engine(run)


def _requests(run: Recording) -> dict[str, float]:
    table = run.arrow("requests")
    if not len(table):
        return {}
    frame = frame_of(table, REQUESTS)
    tokens = frame["generation_tokens"].where(frame["generation_tokens"] > 1) - 1
    each = (frame["finished_ns"] - frame["first_token_ns"]) / tokens
    frame["queued"] = frame["scheduled_ns"] - frame["arrival_ns"]
    frame["first"] = frame["first_token_ns"] - frame["scheduled_ns"]
    codes, names = texts_of(table, "request_class")
    kinds = Groups(codes, len(names)).mean(each.to_numpy(np.float64))
    cached = frame["cached_tokens"].sum(min_count=1) / frame["prompt_tokens"].sum()
    return {
        "queued_time": float(frame["queued"].mean()),
        "first_token_time": float(frame["first"].mean()),
        "token_time": float(each.mean()),
        "token_time_worst": float(each.quantile(0.95)),
        "prompt_tokens": float(frame["prompt_tokens"].mean()),
        "generation_tokens": float(frame["generation_tokens"].mean()),
        "cached_share": float(cached),
        "preempted_requests": float(frame["preemptions"].mean()),
        "class_spread": reduced(kinds, np.max) / reduced(kinds, np.min),
    }


def _engine(run: Recording) -> dict[str, float]:
    table = run.arrow("engine")
    if not len(table):
        return {}
    frame = frame_of(table, ENGINE)
    means, sums = frame.mean(), frame.sum(min_count=1)
    decoding = frame[(frame["prefill_tokens"] == 0) & (frame["decode_tokens"] > 0)]
    mixed = frame[(frame["prefill_tokens"] > 0) & (frame["decode_tokens"] > 0)]
    drafted, looked_up = sums["draft_tokens"], sums["prefix_cache_queries"]
    return {
        "engine_step": float(means["duration_ns"]),
        "scheduler_time": float(means["scheduler_ns"]),
        "scheduler_share": float(sums["scheduler_ns"] / sums["duration_ns"]),
        "scheduler_spread": float(frame["scheduler_ns"].quantile(0.9) / means["scheduler_ns"]),
        "running": float(means["num_requests_running"]),
        "waiting": float(means["num_requests_waiting"]),
        "kv_usage": float(means["kv_cache_usage"]),
        "kv_most": float(frame["kv_cache_usage"].max()),
        "prefill_in_step": float(means["prefill_tokens"]),
        "decode_in_step": float(means["decode_tokens"]),
        "preemptions_in_step": float(means["num_preemptions"]),
        "hit_share": float(sums["prefix_cache_hits"] / looked_up) if looked_up > 0 else np.nan,
        "accepted_share": float(sums["accepted_tokens"] / drafted) if drafted > 0 else np.nan,
        "drafted_in_step": float(means["draft_tokens"]),
        "model_time": float((decoding["duration_ns"] - decoding["scheduler_ns"]).mean()),
        "model_least": float((decoding["duration_ns"] - decoding["scheduler_ns"]).quantile(0.1)),
        "mixed_share": len(mixed) / len(frame),
        "mixed_longer": float(mixed["duration_ns"].mean() / decoding["duration_ns"].mean()),
    }
