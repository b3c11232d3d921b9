"""Processes held back or crowded, for real, and let go again."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from injectors import capabilities
from injectors.recorder import disturbances
from injectors.recorder.procfs import process_stat


@pytest.fixture
def spinning():
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
    yield child.pid
    child.kill()
    child.wait()


def share_of_a_core(pid, seconds):
    before, began = process_stat(pid).cpu_ns, time.monotonic_ns()
    time.sleep(seconds)
    return (process_stat(pid).cpu_ns - before) / (time.monotonic_ns() - began)


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_a_suspended_process_runs_for_the_rest_of_each_period(spinning):
    free = share_of_a_core(spinning, 0.6)
    with disturbances.suspended(spinning, 0.7, 0.05):
        held = share_of_a_core(spinning, 1.2)
    assert 0.1 * free < held < 0.6 * free
    assert state(spinning) != "T"


def test_a_suspended_process_goes_on_after_an_error(spinning):
    with pytest.raises(RuntimeError), disturbances.suspended(spinning, 0.99, 60):
        time.sleep(0.05)
        raise RuntimeError
    assert state(spinning) != "T"


def test_suspending_a_process_that_dies_is_no_error_of_its_own():
    child = subprocess.Popen(["sleep", "60"])
    with disturbances.suspended(child.pid, 0.5, 0.01):
        child.kill()
        child.wait()
        time.sleep(0.05)


def test_a_quota_holds_a_process_and_its_children_together():
    found = capabilities.cpu_quota()
    if not found:
        pytest.skip(found.reason)
    child = subprocess.Popen(
        ["sh", "-c", "while :; do :; done & while :; do :; done"], start_new_session=True
    )
    try:
        deadline = time.monotonic() + 5
        while not disturbances.children(child.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        (helper,) = disturbances.children(child.pid)
        with disturbances.quota([child.pid], 0.3):
            inside = [Path(f"/proc/{pid}/cgroup").read_text() for pid in (child.pid, helper)]
            began = time.monotonic()
            before = [process_stat(pid).cpu_ns for pid in (child.pid, helper)]
            time.sleep(1.5)
            after = [process_stat(pid).cpu_ns for pid in (child.pid, helper)]
            used = (sum(after) - sum(before)) / 1e9 / (time.monotonic() - began)
        assert 0.1 < used < 0.45
        assert all("evalharness-" in text for text in inside)
        for pid in (child.pid, helper):
            assert Path(f"/proc/{pid}/cgroup").read_text() == Path("/proc/self/cgroup").read_text()
    finally:
        os.killpg(child.pid, 9)
        child.wait()


def test_what_alternates_begins_and_ends_and_is_under_way_after_the_block():
    told = []
    with disturbances.alternating(
        lambda: told.append("go"), 0.5, lambda: told.append("stop"), 0.02
    ):
        time.sleep(0.15)
    assert told[0] == "stop"
    assert told[-1] == "go"
    assert 3 <= told.count("stop") <= 8
