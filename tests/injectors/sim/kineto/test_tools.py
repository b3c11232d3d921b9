"""What the tools of others make of simulated traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from injectors.sim.job import Job
from injectors.sim.kineto import write_traces
from tests.injectors.sim.kineto.conftest import unpacked
from tests.injectors.sim.kineto.jobs import small_run
from tests.tools import run_tool

HTA = """
import json, sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_dir=sys.argv[1])
busy = analysis.get_temporal_breakdown(visualize=False)
overlap = analysis.get_comm_comp_overlap(visualize=False)
kinds, _ = analysis.get_gpu_kernel_breakdown(visualize=False)
queue = analysis.get_queue_length_summary()
print(json.dumps({
    "busy": busy.to_dict("list"),
    "overlap": overlap.to_dict("list"),
    "kinds": dict(zip(kinds["kernel_type"], kinds["percentage"])),
    "deepest": float(queue["queue_length"]["max"].max()),
}))
"""
PLUGIN = """
import json, sys, tempfile
from torch_tb_profiler.profiler.data import RunProfileData
found = RunProfileData.parse("worker", "1", sys.argv[1], tempfile.mkdtemp())
print(json.dumps({
    "kernels": found.has_kernel,
    "communication": found.has_communication,
    "utilisation": found.gpu_metrics_parser.gpu_utilization[0],
    "occupancy": found.gpu_metrics_parser.avg_occupancy_per_device[0],
    "recommendations": found.recommendations,
}))
"""
IDLE = "import sys, analyzer; sys.exit(analyzer._cli())"
PROFILED_STEPS = 14


def slow_loader(job: Job) -> None:
    job.loader.decode_ns *= 20


def healthy(job: Job) -> None:
    pass


def written(folder: Path, edit: Callable[[Job], None], ranks: tuple[int, ...] = (0,)) -> Path:
    """Write traces into a folder, plain and gzipped; returns it."""
    run = small_run(
        "vision", 8, ranks, edit, steps=PROFILED_STEPS + 2, profiled_steps=PROFILED_STEPS
    )
    (folder / "gz").mkdir()
    for rank, packed in write_traces(run, ranks).items():
        (folder / "gz" / f"rank{rank}.json.gz").write_bytes(packed)
        (folder / f"rank{rank}.json").write_text(json.dumps(unpacked(packed)))
    return folder


def both(folder: Path) -> tuple[Path, Path]:
    """Write a healthy job, and one whose loader is slow."""
    for name in ("healthy", "slow"):
        (folder / name).mkdir()
    return written(folder / "healthy", healthy), written(folder / "slow", slow_loader)


def last_line(printed: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    return found


def test_hta_breaks_time_down(tmp_path: Path) -> None:
    folder = written(tmp_path, healthy, (0, 5)) / "gz"
    found = last_line(run_tool("hta", HTA, folder))
    assert found["busy"]["rank"] == [0, 5]
    for idle, compute, other in zip(
        found["busy"]["idle_time_pctg"],
        found["busy"]["compute_time_pctg"],
        found["busy"]["non_compute_time_pctg"],
        strict=True,
    ):
        assert idle + compute + other == pytest.approx(100, abs=0.1)
        assert compute > 50
    assert all(0 < share < 100 for share in found["overlap"]["comp_comm_overlap_pctg"])
    assert {"COMPUTATION", "COMMUNICATION", "MEMORY"} <= set(found["kinds"])
    assert 0 < found["deepest"] <= 1022


def test_torch_tb_profiler_recommends_what_fits(tmp_path: Path) -> None:
    """It knows the loader's range only as an operator, as torch wrote it until 2022."""
    usual, slow = (path / "gz" / "rank0.json.gz" for path in both(tmp_path))
    before, after = (
        last_line(run_tool("torch-tb-profiler", PLUGIN, path)) for path in (usual, slow)
    )
    assert before["kernels"] and before["communication"]
    assert 0 < before["occupancy"] <= 100
    assert before["utilisation"] > 0.8 > 0.5 > after["utilisation"]
    assert not any("low utilization" in text for text in before["recommendations"])
    assert any("low utilization" in text for text in after["recommendations"])


def test_gpu_idle_names_the_loader(tmp_path: Path) -> None:
    usual, slow = (path / "rank0.json" for path in both(tmp_path))
    before, after = (
        json.loads(run_tool("gpu-idle", IDLE, "--json", path)) for path in (usual, slow)
    )
    assert before["measurements"]["steps"] == PROFILED_STEPS
    assert before["findings"] == []
    assert before["measurements"]["busy_pct"] > 80
    assert [finding["cause"] for finding in after["findings"]] == ["dataloader"]
