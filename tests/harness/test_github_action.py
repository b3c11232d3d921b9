"""The action of docs/github-action: its script is run for real, its file read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ACTION = Path(__file__).parents[2] / "docs" / "github-action"
DIAGNOSERS = """
def good(case):
    if case.has("loader") and case.loader["cpu_ns"].mean() > 5e6:
        return {"verdict": "faulty", "findings": [{"cause": "dataloader_cpu_bound"}]}
    return {"verdict": "healthy"}

def alarmist(case):
    return {"verdict": "faulty", "findings": [{"cause": "slow_link"}]}
"""
POLICY = """
format: evalharness.policy/1.1
split: train
baseline: {max_newly_misled: 0}
"""


def action(folder: Path, suite: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the action's script as its `env` says, with the defaults of its inputs."""
    definition = yaml.safe_load((ACTION / "action.yml").read_text())
    (judge,) = (step for step in definition["runs"]["steps"] if step.get("id") == "gate")
    defaults = {name: entry.get("default", "") for name, entry in definition["inputs"].items()}
    given = defaults | {"suite": str(suite), "allow-unsealed": "true"} | inputs
    wanted = {
        variable: given[re.fullmatch(r"\${{ inputs\.([a-z-]+) }}", text)[1]]  # type: ignore[index]
        for variable, text in judge["env"].items()
    }
    own = {
        "GITHUB_ACTION_PATH": str(ACTION),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GITHUB_OUTPUT": str(folder / "output.txt"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_DATA_HOME": str(folder / "data"),
        "HOME": str(folder),
    }
    line = ["bash", "-c", judge["run"]]
    return subprocess.run(line, cwd=folder, env=own | wanted, capture_output=True, text=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(DIAGNOSERS)
    (tmp_path / "gate.yaml").write_text(POLICY)
    return tmp_path


def test_what_is_worse_than_its_baseline_is_stopped(project: Path, tiny_suite: Path) -> None:
    common = {
        "baseline-diagnoser": "mine.py:good",
        "run-arguments": "--isolation process --timeout 30",
    }
    done = action(project, tiny_suite, diagnoser="mine.py:alarmist", **common)
    assert done.returncode == 1, done.stderr
    outputs = dict(line.split("=", 1) for line in (project / "output.txt").read_text().splitlines())
    assert outputs.pop("verdict") == "stop"
    assert all((project / path).is_file() for path in outputs.values()), outputs
    assert ElementTree.parse(project / outputs["junit"]).find(".//failure") is not None
    report = json.loads((project / outputs["json"]).read_text())
    assert (report["result"], report["baseline"]) == ("candidate", "baseline")
    assert (
        "### evalharness gate: stop: candidate against baseline on tiny"
        in (project / "summary.md").read_text()
    )
    done = action(project, tiny_suite, diagnoser="mine.py:good", **common)
    assert done.returncode == 0, done.stderr


def test_a_bad_policy_ends_with_2_and_says_why(project: Path, tiny_suite: Path) -> None:
    (project / "gate.yaml").write_text(POLICY.replace("train", "dev") + "margin: 3\n")
    arguments = {"run-arguments": "--isolation process", "evidence": "true"}
    done = action(project, tiny_suite, diagnoser="mine.py:good", **arguments)
    assert done.returncode == 2
    assert "gate.yaml: margin: Extra inputs are not permitted, found 3" in done.stderr
    assert not (project / "output.txt").exists()
    assert "evidence" in (project / "evalharness-results" / "candidate.txt").read_text()
    both = {"baseline": "x", "baseline-diagnoser": "mine.py:good"}
    done = action(project, tiny_suite, diagnoser="mine.py:good", **arguments, **both)
    assert (done.returncode, "must not both be given" in done.stderr) == (2, True)


def test_inputs_outputs_and_the_example_agree() -> None:
    definition = yaml.safe_load((ACTION / "action.yml").read_text())
    assert definition["runs"]["using"] == "composite"
    assert all(entry["description"] for entry in definition["inputs"].values())
    text = (ACTION / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(definition["inputs"])
    printed = set(re.findall(r'echo "([a-z]+)=', (ACTION / "gate.sh").read_text()))
    assert printed == set(definition["outputs"])
    example = yaml.safe_load((ACTION / "example.yml").read_text())
    (step,) = (step for step in example["jobs"]["gate"]["steps"] if step.get("id") == "gate")
    assert step["uses"].split("@")[0].endswith("docs/github-action")
    assert set(step["with"]) <= set(definition["inputs"])
    used = set(re.findall(r"steps\.gate\.outputs\.([a-z]+)", (ACTION / "example.yml").read_text()))
    assert used <= set(definition["outputs"])
