"""Stores a trace in airun's workspace and calls `airun diagnose ID --json` on it."""

import io
import json
import sys
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

TRACE = "case"


def main(asked: str, told: str) -> None:
    """Write what it prints."""
    from airun.cli.main import app
    from airun.events.models import TraceRecord, TraceSpan
    from airun.store import get_trace_store

    Path(".airun").mkdir()
    Path(".airun/config.yaml").write_text("storage_backend: jsonl\n")
    given = json.loads(Path(asked).read_text())["spans"]
    spans = [TraceSpan(**span_of(index, span)) for index, span in enumerate(given)]
    record = TraceRecord(trace_id=TRACE, created_at=moment(0), spans=spans)
    get_trace_store().save_trace(record)
    with redirect_stdout(io.StringIO()) as printed:
        app(["diagnose", TRACE, "--json"], standalone_mode=False)
    Path(told).write_text(json.dumps(json.loads(printed.getvalue(), strict=False)))


def span_of(index: int, span: dict[str, Any]) -> dict[str, Any]:
    """One of its spans."""
    start_ns = span.pop("start_ns")
    duration_ns = span.pop("duration_ns")
    return {
        **{name: value for name, value in span.items() if value is not None},
        "trace_id": TRACE,
        "span_id": str(index),
        "name": f"{span['kind']}{index}",
        "start_time": moment(start_ns),
        "end_time": moment(start_ns + duration_ns),
        "duration_ms": duration_ns / 1e6,
    }


def moment(time_ns: int) -> str:
    """A time of the case as a date."""
    return (datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_ns / 1000)).isoformat()


if __name__ == "__main__":
    main(*sys.argv[1:])
