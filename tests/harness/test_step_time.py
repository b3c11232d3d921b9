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


def test_engine_steps_stand_in() -> None:
    engine = pd.DataFrame({"engine": "a", "step": [0, 1, 2], "duration_ns": [99, 4, 8]})
    run = _run(engine=engine)
    run.reference = _run(engine=engine.assign(duration_ns=[99, 3, 3]))
    assert mean_step_ns(run) == 6
    assert slowdown(run) == pytest.approx(2)


def test_untimed_runs_have_none() -> None:
    run = _run()
    run.reference = None
    assert mean_step_ns(run) is None and slowdown(run) is None
