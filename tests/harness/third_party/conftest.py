"""Cases made of hand-written traces, and the tools' own environments."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cases.bundle import write_case
from cases.errors import InputError
from cases.schema import CaseInfo
from harness.environments import Environment, install
from harness.sandbox.level import why_no_bubblewrap
from harness.sandbox.limits import MIB, Limits
from harness.sandbox.worker import CaseRun, Place, Task, Worker, public_code

Events = list[dict[str, Any]]
LEVEL = "process" if why_no_bubblewrap() else "bwrap"


def make_span(
    name: str, cat: str, start_us: float, length_us: float, **args: Any
) -> dict[str, Any]:
    """One complete event; kernels lie on the device, all else on the host."""
    pid, tid = (0, 7) if cat in ("kernel", "gpu_memcpy") else (100, 100)
    return {
        **{"ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": start_us},
        **{"dur": length_us, "args": args},
    }


def packed(events: Events) -> bytes:
    """A compressed trace of the events."""
    return gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode(), mtime=0)


def write_traced(folder: Path, traces: Mapping[int, Events], gpus: bool = True) -> Path:
    """Write an audit case that holds nothing but traces; returns its folder."""
    ranks = [
        {"rank": rank, "host": "host0", "gpu": f"host0/gpu{rank}" if gpus else None}
        for rank in range(max(traces) + 1)
    ]
    info = CaseInfo.model_validate(
        {
            **{"id": folder.name, "title": "A traced job", "kind": "training"},
            **{"shape": "snapshot", "question": "audit", "objective": "Find what is slow."},
            "workload": {"name": "any"},
            **{"topology": {"ranks": ranks}, "environment": {}},
            "signals": {"present": ["trace_events"]},
            "provenance": {"backend": "imported"},
        }
    )
    write_case(folder, info, {}, {rank: packed(events) for rank, events in traces.items()}, None)
    return folder


@pytest.fixture
def traced(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a case of traces by rank."""

    def write(traces: Mapping[int, Events], name: str = "aaaa", **options: Any) -> Path:
        return write_traced(tmp_path / "suite" / name, traces, **options)

    return write


@pytest.fixture(scope="session")
def tool() -> Callable[[str], Environment]:
    """Return a function that makes a tool's environment, or skips where it can't be made."""

    def made(name: str) -> Environment:
        try:
            return install(name)
        except InputError as error:
            pytest.skip(str(error))

    return made


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Callable[..., list[CaseRun]]]:
    """Return a function that asks a diagnoser about cases, isolated as well as can be here."""

    with public_code() as code:

        def ask(task: Task, folders: list[Path], timeout_s: float = 60.0) -> list[CaseRun]:
            limits = Limits(timeout_s=timeout_s, memory_bytes=2048 * MIB)
            place = Place(LEVEL, limits, code, {"labels": [tmp_path / "labels"]})
            with Worker(task, place) as worker:
                return [worker.run(folder) for folder in folders]

        yield ask


@pytest.fixture
def span() -> Callable[..., dict[str, Any]]:
    """Return the function that makes an event."""
    return make_span
