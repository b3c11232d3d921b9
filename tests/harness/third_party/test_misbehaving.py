"""A tool that is killed, hangs, prints rubbish or crashes costs one case and no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.sandbox.worker import Task

# Stands where a tool's interpreter stands; what it does hangs on how many ranks have traces.
PYTHON = """#!/bin/sh
asked=$6 told=$7
case $(grep -o 'traces/rank' "$asked" | wc -l) in
  1) echo '{"0": {"findings": []}}' > "$told" ;;
  2) kill -9 $$ ;;
  3) sleep 60 ;;
  4) echo 'rubbish}' > "$told" ;;
  5) echo 'Traceback: no such kernel' >&2; exit 1 ;;
  6) echo '{"0": "a word"}' > "$told" ;;
  7) exit 0 ;;
esac
"""


def test_each_costs_its_own_case_only(
    tmp_path: Path,
    traced: Callable[..., Path],
    asked: Callable[..., Any],
    span: Callable[..., dict[str, Any]],
) -> None:
    python = tmp_path / "tool" / "python"
    python.parent.mkdir()
    python.write_text(PYTHON)
    python.chmod(0o755)
    target = {"module": "harness.diagnosers.third_party.gpu_idle", "function": "diagnose"}
    settings = {"python": str(python)}
    task = Task({**target, "search": []}, settings=settings, shown=(python.parent,))
    step = span("ProfilerStep#1", "user_annotation", 0, 10)
    folders = [
        traced({rank: [step] for rank in range(ranks)}, f"case{index}")
        for index, ranks in enumerate((1, 2, 3, 1, 4, 5, 6, 7, 1))
    ]
    runs = asked(task, folders, timeout_s=3.0)
    assert [run.outcome for run in runs] == [
        *("ok", "error", "timeout", "ok", "error", "error", "error", "error", "ok")
    ]
    assert all(json.loads(run.answer)["verdict"] == "healthy" for run in runs if run.answer)
    assert "signal 9" in runs[1].error
    assert "must be JSON" in runs[4].error
    assert "no such kernel" in runs[5].output
    assert "left none" in runs[7].error
