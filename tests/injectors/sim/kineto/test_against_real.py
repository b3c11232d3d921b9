"""Simulated traces beside real ones, where EVALHARNESS_REAL_TRACES names a folder that has them."""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from injectors.sim.kineto import write_traces
from tests.injectors.sim.kineto.conftest import unpacked
from tests.injectors.sim.kineto.jobs import small_run

FOLDER = Path(os.environ.get("EVALHARNESS_REAL_TRACES", "/nonexistent"))
DDP, H100, SYNC = (
    "hta_nccl_args_a100_rank0of2.json.gz",
    "tracelens_qwen0.5b_h100.json.gz",
    "hta_cuda_sync_a100.json.gz",
)
NEWER = {"args.Seq"}  # torch 2.5 and later
Events = list[dict[str, Any]]

pytestmark = pytest.mark.skipif(
    not (FOLDER / DDP).is_file(), reason="EVALHARNESS_REAL_TRACES names no folder of real traces"
)


def real(name: str) -> Events:
    found: Events = json.loads(gzip.decompress((FOLDER / name).read_bytes()))["traceEvents"]
    return found


@pytest.fixture(scope="module")
def ours() -> Events:
    run = small_run(layers=8, compiled=False)
    found: Events = unpacked(write_traces(run, (0,))[0])["traceEvents"]
    return found


@pytest.fixture(scope="module")
def theirs() -> Events:
    return [event for name in (DDP, H100, SYNC) for event in real(name)]


def fields(events: Iterable[dict[str, Any]]) -> dict[Any, set[str]]:
    """Return the fields and arguments of each kind of event."""
    found: dict[Any, set[str]] = defaultdict(set)
    for event in events:
        kind = event["ph"], event.get("cat"), event["name"] if event["ph"] == "M" else ""
        found[kind] |= {*event, *(f"args.{name}" for name in event.get("args") or ())}
    return found


def test_every_field_is_one_that_real_traces_have(ours: Events, theirs: Events) -> None:
    known = fields(theirs)
    for kind, names in fields(ours).items():
        assert kind in known
        assert names - known[kind] <= NEWER


def test_every_kind_of_event_of_a_ddp_job_is_there(ours: Events) -> None:
    kinds = fields(ours).keys()
    assert {kind for kind in fields(real(DDP)) if kind not in kinds} <= {("X", "gpu_memset", "")}


def test_as_many_events_a_kernel_as_newer_traces(ours: Events) -> None:
    """Without Python stacks and memory events, which are asked for apart."""
    newer = [e for e in real(H100) if e.get("cat") not in ("python_function", "cpu_instant_event")]
    shares = [
        len(events) / sum(event.get("cat") == "kernel" for event in events)
        for events in (ours, newer)
    ]
    assert 0.7 < shares[0] / shares[1] < 1.5


def test_launches_take_as_long(ours: Events) -> None:
    medians = [
        np.median([event["dur"] for event in events if event["name"] == "cudaLaunchKernel"])
        for events in (ours, real(H100), real(DDP))
    ]
    assert 0.4 * min(medians[1:]) < medians[0] < 1.5 * max(medians[1:])
