"""The mean step time by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from cases.table_files import to_frame
from cases.tables import to_arrow
from harness.step_time import mean_step_ns, slowdown


def _run(**tables: pd.DataFrame) -> Any:
    empty = pd.DataFrame({"rank": [], "step": []}), pd.DataFrame({"engine": [], "step": []})
    frames = dict(zip(("steps", "engine"), empty, strict=True)) | tables
    return SimpleNamespace(**{k: to_frame(to_arrow(k, v)) for k, v in frames.items()})


def test_stretches_weigh_by_their_steps_and_the_first_step_is_left_out() -> None:
    steps = pd.DataFrame({"rank": 0, "step": [0, 1, 11], "span": [1, 1, 3]})
    run = _run(steps=steps.assign(duration_ns=[900, 10, 30]))
    assert mean_step_ns(run) == 25  # (10 + 3 * 30) / 4


def test_tokens_stand_in_where_only_engines_are_timed() -> None:
    engine = pd.DataFrame(
        {
            "engine": ["a", "a", "b"],
            "step": [0, 1, 0],
            "start_ns": [0, 60, 10],
            "duration_ns": [50, 40, 70],
            "decode_tokens": [4, 10, 2],
            "draft_tokens": [0, 8, 0],
            "accepted_tokens": [0, 2, 0],
        }
    )
    run = _run(engine=engine)
    # From 0 to 100 ns; 4 + (10 - 8 + 2) + 2 tokens.
    assert mean_step_ns(run) == 10
    run.reference = _run(engine=engine.assign(decode_tokens=[14, 10, 12]))
    assert slowdown(run) == pytest.approx(3)


def test_steps_go_before_engine_steps() -> None:
    engine = pd.DataFrame({"engine": ["a"], "step": [0], "start_ns": [0], "duration_ns": [9]})
    steps = pd.DataFrame({"rank": 0, "step": [0, 1], "span": 1, "duration_ns": [7, 5]})
    assert mean_step_ns(_run(engine=engine.assign(decode_tokens=3), steps=steps)) == 5


def test_untimed_runs_have_none() -> None:
    run = _run()
    run.reference = None
    assert mean_step_ns(run) is None and slowdown(run) is None
