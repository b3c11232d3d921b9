"""`evalharness doctor` tries the machine for real and names reasons."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cases.taxonomy import Taxonomy
from harness import doctor
from harness.commands.doctor import command
from injectors.capabilities import Capability
from injectors.decoys import DECOYS
from injectors.faults import FAULTS


@pytest.fixture(scope="module")
def report():
    done = CliRunner().invoke(command, ["--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_every_cause_and_decoy_stands_once_with_a_reason(report):
    assert [row["name"] for row in report["causes"]] == [*Taxonomy.load().causes]
    assert [row["name"] for row in report["decoys"]] == [*DECOYS]
    assert all(row["reason"] for rows in report.values() for row in rows)
    assert report["causes"][0]["domain"] == "model_framework"
    machine = {row["name"]: row["ok"] for row in report["machine"]}
    assert isinstance(machine["sealed isolation (bubblewrap)"], bool)


def test_causes_that_only_the_simulator_breaks_or_nothing_yet_say_so(report):
    reasons = {row["name"]: row["reason"] for row in report["causes"]}
    assert reasons["thermal_throttle"] == "simulator: --backend sim breaks it"
    without = {name for name, reason in reasons.items() if reason == "no injector yet"}
    assert without == {"ptx_jit_startup"}


def test_reason_of_what_cannot_be_injected(monkeypatch):
    broken = Capability(False, "tc is not installed")
    monkeypatch.setitem(doctor.CAPABILITIES, "network_shaping", lambda: broken)
    assert doctor.cause("slow_link") == Capability(False, "network_shaping: tc is not installed")
    assert doctor.cause("cpu_contention_colocated") == Capability(True, "in every workload")


def test_several_gpus_are_missing_where_there_is_one(monkeypatch):
    one = Capability(False, "1 visible, 2 needed, NVIDIA H200")
    monkeypatch.setitem(doctor.CAPABILITIES, "cuda", lambda: Capability(True, "1 visible"))
    monkeypatch.setitem(doctor.CAPABILITIES, "nccl", lambda: Capability(True, "in torch"))
    monkeypatch.setitem(doctor.CAPABILITIES, "several_gpus", lambda: one)
    found = {name: doctor.injectable(FAULTS[name]) for name in FAULTS if name.startswith("nccl_")}
    assert len(found) == 4
    assert {answer.reason for answer in found.values()} == {f"several_gpus: {one.reason}"}
    assert doctor.injectable(FAULTS["allocator_retry_fragmentation"]).ok


def test_text_counts_the_causes(report):
    done = CliRunner().invoke(command, [])
    here = sum(row["ok"] for row in report["causes"])
    assert done.output.splitlines()[-1] == (
        f"{here} of {len(report['causes'])} causes can be injected here"
    )


def test_missing_package_names_its_extra():
    row = doctor.package("no-such-distribution", "track")
    assert row["reason"] == "pip install 'evalharness[track]'"


BARE = """
import sys
from importlib.machinery import PathFinder
class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in {"torch", "triton", "pynvml", "psutil"}
        return None if hidden else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Installed
from harness.cli import main
main(["doctor", "--json"])
"""


def test_works_without_the_libraries_that_record():
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", BARE], capture_output=True, text=True, cwd=root, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    rows = [row for row in report["causes"] if row["name"] in FAULTS] + report["decoys"]
    assert len(rows) == len(FAULTS) + len(DECOYS)
    assert {row["ok"] for row in rows} == {False}
    assert all("torch: pip install 'evalharness[record]'" in row["reason"] for row in rows)


def test_isolation_says_what_run_would_say(monkeypatch):
    monkeypatch.setattr(doctor, "why_no_bubblewrap", lambda: "no `bwrap` on PATH")
    assert doctor.isolation() == Capability(False, "no `bwrap` on PATH")
