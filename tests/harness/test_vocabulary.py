"""Names of files, functions and ranges: what differs between a faulty trace and its twin's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cases.bundle import Suite
from cases.taxonomy import Taxonomy
from harness.audit import audit_suite
from harness.audit.vocabulary import odd_names, vocabulary
from harness.judge import Truth, load_truths

LOADER = "dataloader_cpu_bound"


@pytest.fixture(scope="module")
def truths(tiny_suite: Path) -> dict[str, Truth]:
    return load_truths(tiny_suite)


def _add(folder: Path, *names: tuple[str, str]) -> None:
    path = folder / "traces" / "rank0.json.gz"
    trace = json.loads(gzip.decompress(path.read_bytes()))
    trace["traceEvents"] += [
        {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": 1, "dur": 1}
        for category, name in names
    ]
    path.write_bytes(gzip.compress(json.dumps(trace).encode(), mtime=0))


def test_numbers_are_no_names(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    folder = tiny_copy / tiny_ids["loader_dev"]
    _add(folder, ("python_function", "loop.py(31): step"), ("python_function", "<f at 0x7f1a>"))
    _add(folder, ("python_function", "loop.py(48): step"), ("cpu_op", "aten::add"))
    assert vocabulary(Suite.open(tiny_copy).case(folder.name)) == {
        ("user_annotation", "ProfilerStep##"),
        ("python_function", "loop.py(#): step"),
        ("python_function", "<f at #>"),
    }


def test_name_of_a_fault_is_listed_first(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    for role, case_id in tiny_ids.items():
        shared = ("python_function", "loop.py(31): step")
        mark = [("python_function", "burn.py(7): spin")] if role.startswith("loader") else []
        once = [("user_annotation", "warm-up")] if role == "twin_dev" else []
        _add(tiny_copy / case_id, shared, *mark, *once)
    audit = audit_suite(tiny_copy, Taxonomy.load())
    first, *others = audit.odd_names
    assert (first.cause, first.name, first.pairs) == (LOADER, "burn.py(#): spin", 2)
    assert (first.faulty_only, first.twin_only, first.healthy) == (2, 0, 0)
    assert first.telling
    (other,) = others
    assert (other.name, other.faulty_only, other.twin_only, other.pairs) == ("warm-up", 0, 1, 2)
    assert not other.telling
    assert audit.passed  # it is reported: a person judges


def test_name_that_a_healthy_case_has_too_tells_nothing(
    truths: dict[str, Truth], tiny_ids: dict[str, str]
) -> None:
    words = {case_id: {("python_function", "a.py(#): f")} for case_id in truths}
    for role in ("loader_train", "loader_dev", "decoy_test"):
        words[tiny_ids[role]] = {*words[tiny_ids[role]], ("user_annotation", "odd")}
    (found,) = odd_names(words, truths)
    assert (found.faulty_only, found.pairs, found.healthy) == (2, 2, 1)
    assert not found.telling


def test_cases_without_traces_are_not_compared(truths: dict[str, Truth]) -> None:
    assert odd_names({case_id: set() for case_id in truths}, truths) == []
    assert odd_names({}, truths) == []
