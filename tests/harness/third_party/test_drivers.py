"""The tools themselves, asked through the sandbox about a job that is known by heart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.diagnosers.third_party import TOOLS
from harness.environments import Environment, environment_of
from harness.specs import parse_spec
from tests.harness.third_party.starved_job import write_starved

# Made by the tests where they are not there yet; the others must have been installed before.
SMALL = {"gpu-idle", "gpuprof", "pytscope"}
# name -> what it says is wrong, surest first, with the ranks where it places it (none: the job).
EXPECTED: dict[str, list[tuple[str, tuple[int, ...]]]] = {
    "gpu-idle": [("input_pipeline", ())],
    # 10 of the 80 ms from the first kernel to the last are communication that nothing hides
    "pytscope": [("input_pipeline", ()), ("communication_schedule", ())],
    "fournex": [("input_pipeline", ())],
    "torch-tb-profiler": [],
    "hta": [("host_overhead", ())],
    "nvrx": [("gpu_hardware", (1,))],
    "nvsonar": [("input_pipeline", ())],
    "gpuprof": [("input_pipeline", ())],
    "airun": [("input_pipeline", ())],
    "traceml-ai": [("input_pipeline", ())],
    "datapath-doctor": [("input_pipeline", ())],
}


def test_all_tools_are_tried() -> None:
    assert set(EXPECTED) == set(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_what_it_says_of_a_job_that_waits_for_its_loader(
    name: str,
    tool: Callable[[str], Environment],
    asked: Callable[..., Any],
    tmp_path: Path,
) -> None:
    if name not in SMALL and not environment_of(name).ready:
        pytest.skip(f"not installed (evalharness diagnosers install {name})")
    tool(name)
    (run,) = asked(parse_spec(name).task, [write_starved(tmp_path / "suite" / "aaaa")])
    assert run.outcome == "ok", f"{run.error}\n{run.output}"
    findings = json.loads(run.answer)["findings"]
    said = [(finding["cause"], tuple(finding["locus"]["ranks"])) for finding in findings]
    assert said == EXPECTED[name], run.answer
