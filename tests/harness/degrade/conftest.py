"""A job of four ranks on two hosts, small enough to check by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from cases.schema import (
    CaseInfo,
    Environment,
    Provenance,
    RankPlace,
    Signals,
    Topology,
    Workload,
)
from cases.table_files import to_frame
from cases.tables import TRACE_SIGNAL, to_arrow
from harness.degrade.copies import CaseCopy, RunCopy

HOSTS = ("host0", "host0", "host1", "host1")


def trace(*events: Mapping[str, Any]) -> bytes:
    return json.dumps({"schemaVersion": 1, "traceEvents": list(events)}).encode()


def events(content: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(content)["traceEvents"]
    return found


def operator(start_us: float, length_us: float, **rest: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": "mm", "ts": start_us, "dur": length_us} | rest


def run(frames: Mapping[str, pd.DataFrame], traces: Mapping[int, bytes]) -> RunCopy:
    return RunCopy({name: to_arrow(name, frame) for name, frame in frames.items()}, traces)


def copy(
    frames: Mapping[str, pd.DataFrame],
    traces: Mapping[int, bytes] | None = None,
    hosts: tuple[str, ...] = HOSTS,
    overhead: float | None = None,
    **config: Any,
) -> CaseCopy:
    """A case of tables and traces; its reference run holds the same."""
    recorded = run(frames, traces or {})
    present = tuple(frames) + ((TRACE_SIGNAL,) if traces else ())
    info = CaseInfo(
        id="c0de",
        title="A small job",
        kind="training",
        shape="snapshot",
        question="regression",
        workload=Workload(name="language_model"),
        topology=Topology(ranks=tuple(RankPlace(rank=i, host=h) for i, h in enumerate(hosts))),
        environment=Environment(config=config),
        signals=Signals(present=present),
        provenance=Provenance(backend="torch_cpu", profiler_overhead=overhead),
    )
    return CaseCopy(info, recorded, recorded, {})


def steps(ranks: int, count: int, step_ns: int = 1000) -> pd.DataFrame:
    """Steps of equal length, a fifth of each waiting for data."""
    rows = [
        {
            "rank": rank,
            "step": step,
            "span": 1,
            "start_ns": step * step_ns,
            "duration_ns": step_ns,
            "data_wait_ns": step_ns // 5,
        }
        for rank in range(ranks)
        for step in range(count)
    ]
    return table("steps", pd.DataFrame(rows))


def table(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """A table as it is read: with all of its columns."""
    return to_frame(to_arrow(name, frame))


@pytest.fixture
def small() -> SimpleNamespace:
    """Short ways to make a small case: copy, steps, table, trace, operator; events of a trace."""
    return SimpleNamespace(
        copy=copy, steps=steps, table=table, trace=trace, operator=operator, events=events
    )
