"""`evalharness doctor` tries the machine for real and names reasons."""

import json

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
