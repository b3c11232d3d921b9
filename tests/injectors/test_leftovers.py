"""What a killed recorder leaves is found by the next one, taken away and told."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from cases.errors import ScenarioError
from injectors import capabilities, cgroups, leftovers
from injectors.ownership import is_abandoned, own_name

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
from contextlib import ExitStack
from pathlib import Path
from injectors import cgroups, leftovers
with ExitStack() as stack:
    for make in sys.argv[2:]:
        if make == "group": print(stack.enter_context(cgroups.cpu_group("test")).path, flush=True)
        if make == "scratch": print(stack.enter_context(leftovers.scratch_folder()), flush=True)
        if make == "suite": stack.enter_context(leftovers.sole_recorder(Path(sys.argv[1])))
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def recorder(tmp_path):
    """Start a process that holds things; returns it and the paths that it says it made."""
    started = []

    def start(*what):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path / "suite"), *what],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        started.append(process)
        said = list(iter(process.stdout.readline, "ready\n"))
        return process, [Path(line.strip()) for line in said]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def said_by(clean, *arguments):
    sentences = []
    clean(*arguments, sentences.append)
    return sentences


def test_scratch_folder_of_a_killed_recorder(recorder, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    process, (folder,) = recorder("scratch")
    (folder / "image").write_text("x")
    assert said_by(leftovers.clean_machine) == []
    assert folder.exists(), "its maker still lives"
    kill(process)
    (sentence,) = said_by(leftovers.clean_machine)
    assert str(folder) in sentence
    assert not folder.exists()
    assert said_by(leftovers.clean_machine) == []


def test_control_group_of_a_killed_recorder(recorder, tmp_path, monkeypatch):
    found = capabilities.cpu_quota()
    if not found:
        pytest.skip(found.reason)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    process, (group,) = recorder("group")
    member = subprocess.Popen(["sleep", "60"])
    try:
        (group / "cgroup.procs").write_text(str(member.pid))
        assert cgroups.remove_abandoned() == []
        kill(process)
        assert group.exists()
        (sentence,) = said_by(leftovers.clean_machine)
        assert str(group) in sentence
        assert not group.exists()
        assert member.poll() is None, "what was in the group lives on outside it"
    finally:
        member.kill()
        member.wait()


def test_folders_of_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    others = [tmp_path / name for name in ("evalharness-notes", own_name("live"), "other-1.1-x")]
    for folder in others:
        folder.mkdir()
    assert said_by(leftovers.clean_machine) == []
    assert all(folder.exists() for folder in others)


def test_a_process_id_used_again_is_not_the_maker():
    assert not is_abandoned(own_name("x"))
    assert is_abandoned(own_name("x", maker=f"{os.getpid()}.1"))


def test_a_maker_that_nobody_waited_for_has_ended(recorder):
    process, _ = recorder()
    name = own_name("x", maker=f"{process.pid}.{_started(process.pid)}")
    assert not is_abandoned(name)
    process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while not is_abandoned(name) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_abandoned(name)
    assert Path(f"/proc/{process.pid}").exists()  # as a zombie


def _started(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]


def test_half_written_files_and_halves_of_cases(tiny_copy):
    labels = tiny_copy.parents[1] / "labels" / tiny_copy.name
    before = {path for folder in (tiny_copy, labels) for path in folder.iterdir()}
    (tiny_copy / ".abcd1234.x8_d9e0f" / "signals").mkdir(parents=True)
    (tiny_copy / "suite.json").rename(tiny_copy / ".suite.json.abcdefgh")
    (tiny_copy / "abcd1234").mkdir()
    (labels / ".abcd1234.json.12345678").write_text("{")
    (labels / "dcba4321.json").write_text("{}")
    (tiny_copy / ".gitattributes").write_text("")
    sentences = said_by(leftovers.clean_suite, tiny_copy, labels)
    assert len(sentences) == 5
    after = {path for folder in (tiny_copy, labels) for path in folder.iterdir()}
    assert after == (before - {tiny_copy / "suite.json"}) | {tiny_copy / ".gitattributes"}


def test_cases_of_a_finished_suite_stay_without_labels(tiny_copy, tmp_path):
    before = set(tiny_copy.iterdir())
    assert said_by(leftovers.clean_suite, tiny_copy, tmp_path / "none") == []
    assert set(tiny_copy.iterdir()) == before


def test_one_recorder_a_suite_until_it_dies(recorder, tmp_path):
    process, _ = recorder("suite")
    with (
        pytest.raises(ScenarioError, match="two at once"),
        leftovers.sole_recorder(tmp_path / "suite"),
    ):
        raise AssertionError("must not get here")
    kill(process)
    with leftovers.sole_recorder(tmp_path / "suite"):
        pass
