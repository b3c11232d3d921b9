"""The table `engine`: every step of every engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from injectors.sim.serving.replica import Step


def engine_table(steps: Mapping[str, Sequence[Step]], begin_ns: int) -> pd.DataFrame:
    """Return the rows, each engine's steps numbered from 0; times from `begin_ns` on."""
    frames = [_rows(name, own, begin_ns) for name, own in steps.items() if own]
    return pd.concat(frames, ignore_index=True)


def _rows(name: str, steps: Iterable[Step], begin_ns: int) -> pd.DataFrame:
    frame = pd.DataFrame([_row(step, begin_ns) for step in steps])
    frame.insert(0, "engine", name)
    frame.insert(1, "step", range(len(frame)))
    return frame


def _row(step: Step, begin_ns: int) -> dict[str, int | float]:
    plan, level = step.plan, step.level
    return {
        "start_ns": step.begin_ns - begin_ns,
        "duration_ns": step.end_ns - step.begin_ns,
        "scheduler_ns": step.scheduler_ns,
        "num_requests_running": level.running,
        "num_requests_waiting": level.waiting,
        "kv_cache_usage": level.usage,
        "prefill_tokens": plan.prefill_tokens,
        "decode_tokens": plan.decode_tokens,
        "num_preemptions": plan.preemptions,
        "prefix_cache_queries": plan.queries,
        "prefix_cache_hits": plan.hits,
        "draft_tokens": plan.draft_tokens,
        "accepted_tokens": step.accepted,
    }
