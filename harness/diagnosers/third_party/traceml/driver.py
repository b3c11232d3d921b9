"""Hands TraceML the rows that it would have read from its own store, and takes its diagnosis."""

import json
import sys
from dataclasses import asdict
from pathlib import Path


def main(asked: str, told: str) -> None:
    """Write its main diagnosis and all its issues."""
    from traceml_ai.diagnostics.step_time.api import diagnose_step_time_window
    from traceml_ai.diagnostics.step_time.policy import SUMMARY_STEP_TIME_POLICY
    from traceml_ai.step_time.analysis import StepTimeAnalyzer
    from traceml_ai.step_time.model import (
        StepTimeClockValues,
        StepTimeRepositorySnapshot,
        StepTimeSourceRow,
    )

    request = json.loads(Path(asked).read_text())
    source = [
        StepTimeSourceRow(
            source_id=index,
            global_rank=row["rank"],
            step=row["step"],
            metrics={name: StepTimeClockValues(cpu_ms=ms) for name, ms in row["ms"].items()},
        )
        for index, row in enumerate(request["rows"])
    ]
    snapshot = StepTimeRepositorySnapshot(
        rows=tuple(source),
        global_ranks=tuple(range(request["ranks"])),
        training_strategy=request["strategy"],
    )
    window = StepTimeAnalyzer().analyze(snapshot, window_size=None)
    result = diagnose_step_time_window(window, policy=SUMMARY_STEP_TIME_POLICY)
    said = {
        "primary": asdict(result.primary),
        "issues": [asdict(issue) for issue in result.issues],
    }
    Path(told).write_text(json.dumps(said, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
