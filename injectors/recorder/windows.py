"""Writes what was recorded in one window: tables as parquet, traces scrubbed and gzipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from cases.sanitize_trace import scrub_trace
from cases.tables import to_arrow

# Present even when nothing happened: that nothing did is what they say.
WATCHED = frozenset({"runtime", "logs"})
# Call stacks name the program's files, which lie in a package whose name is a leak of words.
OWN_FILES = (b"injectors/", b"job/")


def write_window(
    folder: Path, answers: dict[int, Any], sampled: dict[str, list[dict[str, Any]]]
) -> float:
    """Write the window's tables and traces; returns mean step seconds, step 0 left out."""
    folder.mkdir(parents=True)
    rows = {name: list(table) for name, table in sampled.items()}
    for answer in answers.values():
        for name, table in answer["tables"].items():
            rows.setdefault(name, []).extend(table)
    begin_ns = min(row["start_ns"] for row in rows["steps"])
    end_ns = max(row["start_ns"] + row["duration_ns"] for row in rows["steps"])
    for name, table in rows.items():
        if table or name in WATCHED:
            write_table(folder / f"{name}.parquet", name, between(begin_ns, end_ns, table))
    for rank, answer in answers.items():
        raw = Path(answer["trace"])
        named = raw.read_bytes().replace(*OWN_FILES)
        content = scrub_trace(named, answer["unix_ns"] + begin_ns)
        (folder / f"rank{rank}.json.gz").write_bytes(content)
        raw.unlink()
    durations = [row["duration_ns"] for row in rows["steps"] if row["step"] > 0]
    return float(sum(durations) / len(durations) / 1e9)


TIMES = (
    "start_ns",
    "time_ns",
    "created_ns",
    "started_ns",
    "completed_ns",
    "arrival_ns",
    "scheduled_ns",
    "first_token_ns",
    "finished_ns",
)


def between(begin_ns: int, end_ns: int, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Count the rows' times from `begin_ns`; samples outside the window's steps are dropped."""
    frame = pd.DataFrame(rows)
    if "time_ns" in frame:
        frame = frame[frame["time_ns"].between(begin_ns, end_ns)].copy()
    for column in TIMES:
        if column in frame:
            frame[column] = frame[column] - begin_ns
    return frame


def write_table(path: Path, name: str, frame: pd.DataFrame) -> None:
    """Write one table in its declared form."""
    pq.write_table(to_arrow(name, frame), path)
