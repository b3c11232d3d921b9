from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cases.bundle import read_case_digest
from cases.case import Case
from cases.errors import InputError, TraceError
from cases.importing import ImportOptions, import_case

SECRET = "/home/ann/secret-project/train.py"


def trace(
    path: Path, rank: int | None = None, start_us: float = 5e9, world: int | None = 2
) -> Path:
    """Write a small trace whose strings tell of a person, a machine and a path."""
    events: list[dict[str, Any]] = [
        {
            **{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 9},
            **{"ts": start_us, "dur": 100.0, "args": {}},
        },
        {
            **{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7},
            **{"ts": start_us + 10, "dur": 50.0, "args": {"device": 0, "stream": 7}},
        },
        {
            **{"ph": "X", "cat": "cpu_op", "name": SECRET, "pid": 9, "tid": 9},
            **{"ts": start_us + 20, "dur": 5.0, "args": {}},
        },
    ]
    document: dict[str, Any] = {
        "schemaVersion": 1,
        "host_name": "node7.example.org",
        "traceName": SECRET,
        "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}],
        "traceEvents": events,
    }
    if rank is not None:
        document["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world}
    content = json.dumps(document).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)
    return path


def test_one_trace_makes_a_whole_case(tmp_path: Path) -> None:
    info = import_case(trace(tmp_path / "t.json"), tmp_path / "suite", ImportOptions())
    case = Case.open(tmp_path / "suite" / info.id)
    assert read_case_digest(tmp_path / "suite" / info.id)
    assert (info.provenance.backend, info.question, info.signals.present) == (
        "imported",
        "audit",
        ("trace_events",),
    )
    assert [(p.rank, p.host, p.gpu) for p in info.topology.ranks] == [(0, "host0", "host0/gpu0")]
    assert info.environment.hardware == {"gpu": "NVIDIA A100"}
    assert list(case.trace_events["start_ns"]) == [0, 10_000, 20_000]


def test_nothing_of_person_machine_or_path_is_left(tmp_path: Path) -> None:
    options = ImportOptions(title="Ann's job on node9", names=("Ann", "node9"))
    info = import_case(trace(tmp_path / "t.json.gz"), tmp_path / "suite", options)
    folder = tmp_path / "suite" / info.id
    text = gzip.decompress((folder / "traces/rank0.json.gz").read_bytes()).decode()
    text += (folder / "case.json").read_text()
    for word in (r"\bann\b", "node7", "node9", r"example\.org", "secret-project"):
        assert not re.search(word, text, re.IGNORECASE)
    assert "train.py" in text


def test_a_folder_is_one_job_with_one_clock(tmp_path: Path) -> None:
    for rank, start_us in ((0, 5e9), (1, 5e9 + 30)):
        trace(tmp_path / "job" / f"any{rank}.json.gz", rank, start_us, world=4)
    info = import_case(tmp_path / "job", tmp_path / "suite", ImportOptions())
    case = Case.open(tmp_path / "suite" / info.id)
    assert len(info.topology.ranks) == 4
    assert case.trace_ranks == (0, 1)
    assert case.trace(1)["start_ns"].min() == 30_000


def test_names_tell_ranks_where_traces_do_not(tmp_path: Path) -> None:
    for rank in (0, 3):
        trace(tmp_path / "job" / f"worker{rank}.pt.trace.json")
    info = import_case(tmp_path / "job", tmp_path / "suite", ImportOptions())
    assert len(info.topology.ranks) == 4
    trace(tmp_path / "job" / "other.json")
    with pytest.raises(InputError, match="must state a rank"):
        import_case(tmp_path / "job", tmp_path / "suite", ImportOptions())


def test_a_reference_makes_it_a_question_of_regression(tmp_path: Path) -> None:
    now, before = trace(tmp_path / "now.json"), trace(tmp_path / "before.json", start_us=7e9)
    info = import_case(now, tmp_path / "suite", ImportOptions(), before)
    case = Case.open(tmp_path / "suite" / info.id)
    assert info.question == "regression"
    assert case.reference is not None and case.reference.trace(0)["start_ns"].min() == 0


def test_what_cannot_be_imported_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    suite, options = tmp_path / "suite", ImportOptions()
    for rank in (1, 2):
        trace(tmp_path / "twice" / f"{rank}.json", rank=0)
    with pytest.raises(InputError, match="only trace of rank 0"):
        import_case(tmp_path / "twice", suite, options)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="must hold files"):
        import_case(tmp_path / "empty", suite, options)
    (tmp_path / "broken.json").write_text('{"traceEvents": [')
    with pytest.raises(TraceError):
        import_case(tmp_path / "broken.json", suite, options)
    assert not suite.exists()
    import_case(trace(tmp_path / "t.json"), suite, options)
    with pytest.raises(InputError, match="must not have been imported before"):
        import_case(tmp_path / "t.json", suite, options)
