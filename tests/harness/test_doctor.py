"""`evalharness doctor` tries the machine for real and names reasons."""

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from harness import doctor
from harness.commands.doctor import command
from injectors.capabilities import Capability
from injectors.decoys import DECOYS
from injectors.faults import FAULTS


def test_every_fault_and_decoy_stands_once():
    done = CliRunner().invoke(command, ["--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert [row["name"] for row in report["injections"]] == [*FAULTS, *DECOYS]
    assert all(row["reason"] for rows in report.values() for row in rows)
    machine = {row["name"]: row["ok"] for row in report["machine"]}
    assert isinstance(machine["sealed isolation (bubblewrap)"], bool)


def test_reason_of_what_cannot_be_injected(monkeypatch):
    broken = Capability(False, "tc is not installed")
    monkeypatch.setitem(doctor.CAPABILITIES, "network_shaping", lambda: broken)
    row = doctor.injection("slow_link")
    assert (row["ok"], row["reason"]) == (False, "network_shaping: tc is not installed")
    assert doctor.injection("storage_fetch_stall")["ok"]


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
    rows = json.loads(done.stdout)["injections"]
    assert {row["name"] for row in rows} == {*FAULTS, *DECOYS}
    assert {row["ok"] for row in rows} == {False}
    assert all("torch: pip install 'evalharness[record]'" in row["reason"] for row in rows)


def test_isolation_says_what_run_would_say(monkeypatch):
    monkeypatch.setattr(doctor, "why_no_bubblewrap", lambda: "no `bwrap` on PATH")
    assert doctor.isolation() == Capability(False, "no `bwrap` on PATH")
