"""Recording for real: a job broken, timed, labelled and shipped; small, but no stand-ins."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="recording needs torch: pip install 'evalharness[record]'")

from cases.bundle import Suite
from cases.documents import read_record
from cases.truth import Truth
from cases.witness import holds
from injectors.capabilities import network_shaping
from injectors.label_rule import recompute
from injectors.matrix import record_all
from injectors.recorder.procfs import process_stat
from injectors.scenario import Scenario

psutil = pytest.importorskip("psutil")

SMALL = {
    "format": "evalharness.scenario/1.0",
    "steps": 24,
    "profiled_steps": 2,
    "trials": {"blocks": 8, "fresh": 4, "steps": 8},
}
STORAGE = Scenario.model_validate(
    SMALL
    | {
        "name": "small-storage",
        "workload": "image_classifier",
        "parameters": {"channels": 4, "pixels": 32, "batch_size": 8, "workers": 1},
        "arms": {
            "slow": {"fault": "storage_fetch_stall", "parameters": {"megabytes_per_s": 0.5}},
            "hidden": {"fault": "storage_fetch_stall", "parameters": {"megabytes_per_s": 900}},
        },
        "cases": [
            {"arm": "slow"},
            {"arm": "hidden"},
            {"arm": "slow", "withhold": "all_but_progress"},
        ],
    }
)
LINK = Scenario.model_validate(
    SMALL
    | {
        "name": "small-link",
        "workload": "language_model",
        "ranks": 2,
        "parameters": {"d_model": 64, "sequence_length": 16, "batch_size": 2},
        "arms": {"slow": {"fault": "slow_link", "parameters": {"rank": 1, "rate_mbit_per_s": 60}}},
        "cases": [{"arm": "slow", "withhold": "all_but_progress"}],
    }
)


def silent(scenario, known):
    return lambda phase, done, total: None


def truths(out, suite):
    return [read_record(path, Truth) for path in sorted((out / "labels" / suite).glob("*.json"))]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A suite of one image scenario, its faulty case refused for want of a proven twin or not."""
    out = tmp_path_factory.mktemp("recorded")
    return out, record_all([STORAGE], out, "small", "Small", silent)


def test_undecidable_case_is_labelled_by_measurement(stored):
    out, _ = stored
    undecidable = [truth for truth in truths(out, "small") if truth.verdict == "undecidable"]
    (truth,) = undecidable
    assert recompute(truth.validation) == []
    assert truth.faults[0].cause == "storage_fetch_stall"
    assert truth.faults[0].lost_fraction.low > 0.3
    assert {"loader", "processes", "trace_events"} <= set(truth.missing_signals)
    case = Suite.open(out / "corpus" / "small").case(truth.id)
    assert set(case.info.signals.present) == {"steps", "logs"}
    assert case.steps["span"].gt(10).any()
    assert case.reference.has("steps")


def test_slow_read_that_prefetching_hides_is_refused_with_its_numbers(stored):
    _, (line,) = stored
    reason = line.refused["small-storage/hidden/nothing"]
    assert "ratio" in reason
    assert "99% low" in reason or "must be faulty" in reason


def test_finished_scenario_is_not_recorded_again(stored):
    out, (line,) = stored
    begin = time.monotonic()
    assert record_all([STORAGE], out, "small", "Small", silent) == [line]
    assert time.monotonic() - begin < 5


def test_slow_link_is_shaped_for_real(tmp_path):
    capability = network_shaping()
    if not capability.ok:
        pytest.skip(capability.reason)
    before = set(Path("/sys/class/net").iterdir())
    (line,) = record_all([LINK], tmp_path, "link", "Link", silent)
    assert len(line.made) == 1, line.refused
    (truth,) = truths(tmp_path, "link")
    assert truth.faults[0].locus.links == ("rank0-rank1",)
    assert truth.validation.ratio.low > 1.05
    assert set(Path("/sys/class/net").iterdir()) == before


def test_killed_recorder_leaves_no_process_behind(tmp_path):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(STORAGE.model_dump_json())
    arguments = [
        sys.executable,
        "-m",
        "harness.cli",
        "record",
        str(scenario),
        "--out",
        str(tmp_path),
    ]
    recorder = subprocess.Popen(
        [sys.executable, "-c", "from harness.cli import main; main()", *arguments[3:]],
        cwd=Path(__file__).parents[2],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    with recorder:
        family = wait_for_ranks(recorder.pid)
        recorder.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 15
    while any(alive(pid) for pid in family) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(pid) for pid in family)
    assert not (tmp_path / "labels").exists()


def descendants(pid):
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def wait_for_ranks(pid):
    """Wait until the recorder has a session with at least one rank."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        family = descendants(pid)
        if len(family) >= 2:
            return family
        time.sleep(0.1)
    raise AssertionError("no rank was started")


def alive(pid):
    stat = process_stat(pid)
    return stat is not None and "zombie" not in Path(f"/proc/{pid}/status").read_text()


def test_labels_hold_what_is_needed_to_make_the_case_again(stored):
    out, _ = stored
    for truth in truths(out, "small"):
        again = Scenario.model_validate(truth.recipe["scenario"])
        assert again.digest == STORAGE.digest
        assert json.dumps(truth.recipe["case"])


def test_witness_of_a_shipped_positive_holds(stored):
    out, _ = stored
    suite = Suite.open(out / "corpus" / "small")
    for truth in truths(out, "small"):
        if truth.witness:
            assert holds(suite.case(truth.id), truth.witness.sql)
