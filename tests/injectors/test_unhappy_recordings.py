"""Recordings that end badly: nothing of them stays, or the next one takes it away."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="recording needs torch: pip install 'evalharness[record]'")

from pandas import DataFrame

from cases.documents import write_json
from cases.errors import HarnessError, ScenarioError
from cases.table_files import write_table
from cases.tables import to_arrow
from injectors import capabilities, cgroups, matrix
from injectors.build import Places, build
from injectors.matrix import enough_room, record_all, run_session
from injectors.ownership import PREFIX
from injectors.public import this_environment
from injectors.recorder.procfs import process_stat
from injectors.scenario import Scenario

psutil = pytest.importorskip("psutil")

ROOT = Path(__file__).parents[2]
SCENARIO = Scenario.model_validate(
    {
        "format": "evalharness.scenario/1.0",
        "name": "unhappy",
        "workload": "language_model",
        "ranks": 2,
        "parameters": {"d_model": 32, "sequence_length": 16, "batch_size": 2},
        "steps": 20,
        "profiled_steps": 1,
        "trials": {"blocks": 4, "fresh": 4, "steps": 4, "null_pairs": 20},
        "arms": {"held": {"fault": "cgroup_cpu_throttle", "parameters": {"cores": 0.3, "rank": 1}}},
        "cases": [{"arm": "healthy", "withhold": "all_but_progress"}],
    }
)


@pytest.fixture
def quota():
    """Groups of recorders; each test leaves the machine as it was."""
    found = capabilities.cpu_quota()
    if not found:
        pytest.skip(found.reason)
    before = set(groups())
    yield
    assert set(groups()) == before


def groups():
    places = (place for _, _, place in cgroups._parents())
    return [path for place in places for path in place.glob(f"{PREFIX}*-job")]


def members(deadline_s=240):
    """Wait until a rank is in a control group; returns its processes."""
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        for group in groups():
            try:
                pids = [int(word) for word in (group / "cgroup.procs").read_text().split()]
            except OSError:
                continue
            if pids:
                return pids
        time.sleep(0.002)
    raise AssertionError("no rank was ever held to a quota")


def descendants(pid):
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def wait_until_gone(pids):
    deadline = time.monotonic() + 15
    while any(process_stat(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(process_stat(pid) for pid in pids)


def interfaces():
    return set(Path("/sys/class/net").iterdir())


def test_what_a_killed_recorder_leaves_is_removed_by_the_next(quota, tmp_path, monkeypatch):
    scenario, scratch = tmp_path / "scenario.yaml", tmp_path / "scratch"
    scratch.mkdir()
    scenario.write_text(SCENARIO.model_dump_json())
    before = interfaces()
    words = [sys.executable, "-c", "from harness.cli import main; main()", "record"]
    recorder = subprocess.Popen(
        [*words, str(scenario), "--out", str(tmp_path / "out"), "--suite", "small"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with recorder:
        members()
        family = descendants(recorder.pid)
        recorder.send_signal(signal.SIGKILL)
    wait_until_gone(family)
    assert interfaces() == before
    assert len(list(scratch.glob(f"{PREFIX}*"))) == 1
    half = tmp_path / "out" / "corpus" / "small" / ".abcd1234.01234567"
    half.mkdir()

    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    told = []
    assert record_all([], tmp_path / "out", "small", "Small", None, told.append) == []
    assert len([words for words in told if "scratch folder" in words]) == 1
    assert len([words for words in told if str(half) in words]) == 1
    assert len(told) - 2 == len([words for words in told if "control group" in words]) <= 1
    assert not list(scratch.glob(f"{PREFIX}*"))
    assert not half.exists()


def test_a_rank_that_dies_ends_the_session_with_everything_in_it(quota, tmp_path):
    before, earlier = interfaces(), set(descendants(os.getpid()))
    killed = []

    def kill():
        killed.append(members()[0])
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    networked = capabilities.network_shaping().ok
    with pytest.raises(ScenarioError, match=r"rank 1 of the recorded job died"):
        run_session(SCENARIO, tmp_path, networked, lambda phase, done, total: None)
    killer.join()
    wait_until_gone(killed)
    assert set(descendants(os.getpid())) <= earlier
    assert interfaces() == before


@pytest.fixture
def recorded(tmp_path):
    """What a session would have written: even steps, a log, and trials of a healthy job."""
    folder = tmp_path / "session"
    steps = [
        {"rank": rank, "step": n, "span": 1, "start_ns": n * 10**7, "duration_ns": 10**7}
        for rank in range(2)
        for n in range(20)
    ]
    for window in ("reference", "case-0"):
        write_table(folder / window / "steps.parquet", to_arrow("steps", DataFrame(steps)))
        write_table(folder / window / "logs.parquet", to_arrow("logs", DataFrame()))
    pairs = [{"baseline": 0.01, "null": 0.01 + n % 3 * 1e-6} for n in range(12)]
    write_json(folder / "result.json", {"blocks": [{"null": pairs}], "windows": {}})
    return folder


HEALTHY = SCENARIO.model_copy(update={"arms": {}})


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 200 kB; only root can mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(disk)]
    found = capabilities.attempt(mount)
    if not found:
        pytest.skip(f"a small file system can't be mounted: {found.reason}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_while_a_session_records(small_disk, tmp_path, monkeypatch):
    earlier = set(descendants(os.getpid()))
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    monkeypatch.setattr(matrix, "network_shaping", lambda: capabilities.Capability(False, "off"))
    with pytest.raises(HarnessError, match="must have room"):
        record_all([HEALTHY], tmp_path / "out", "small", "Small", lambda *_: lambda *_: None)
    assert list(small_disk.iterdir()) == []
    assert set(descendants(os.getpid())) <= earlier
    assert not list((tmp_path / "out" / "corpus" / "small").iterdir())
    assert not (tmp_path / "out" / "labels").exists()


def test_a_disk_that_fills_while_a_case_is_written(small_disk, recorded):
    environment, devices = this_environment(2, {})
    places = Places(small_disk / "corpus" / "small", small_disk / "labels" / "small")
    outcomes = []
    for room in range(0, 120_000, 8192):  # fills in the case, in its label, not at all
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(shutil.disk_usage(small_disk).free - room))
        try:
            with enough_room(small_disk):
                outcome = build(HEALTHY, recorded, environment, devices, places)
            assert outcome.made, outcome.refused
        except HarnessError as error:
            assert "No space left" in str(error)
            assert [path for path in small_disk.rglob("*") if path.is_file()] == [ballast]
        else:
            assert len(list(places.labels.iterdir())) == len(list(places.cases.iterdir())) == 1
            outcomes.append(room)
        for path in small_disk.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert outcomes, "there was never room enough"
    assert outcomes[0] > 0, "there was always room enough"


def test_a_journal_on_a_full_disk_stays_whole(small_disk):
    journal = small_disk / "small.journal.jsonl"
    line = matrix.JournalLine(scenario="a", digest="0", made=())
    matrix.note(journal, line)
    before = journal.read_bytes()
    free = shutil.disk_usage(small_disk).free
    (small_disk / "ballast").write_bytes(bytes(free))
    long = line.model_copy(update={"refused": {"why": "x" * 10_000}})
    with pytest.raises(OSError, match="No space"):
        matrix.note(journal, long)
    assert journal.read_bytes() == before
