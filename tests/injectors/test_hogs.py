"""Competitors: they use CPU, stop when told, and never outlive their parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from injectors import hogs
from injectors.recorder.procfs import process_stat


def cpu_ns(pid):
    return process_stat(pid).cpu_ns


@pytest.mark.parametrize("kind", sorted(set(hogs.PROGRAMS) - hogs.ANNOUNCED))
def test_uses_cpu_and_pauses(kind):
    place = hogs.Place(nice=5, cores=[min(os.sched_getaffinity(0))])
    hog = hogs.start(kind, 1, place, names=["indexer"])
    try:
        (pid,) = hog.pids
        deadline = time.monotonic() + 20
        while cpu_ns(pid) < 3e8 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert cpu_ns(pid) >= 3e8
        hog.pause()
        time.sleep(0.1)
        before = cpu_ns(pid)
        time.sleep(0.4)
        assert cpu_ns(pid) == before
        hog.resume()
        deadline = time.monotonic() + 20
        while cpu_ns(pid) == before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert cpu_ns(pid) > before
        stat = process_stat(pid)
        assert (stat.name, stat.nice) == ("indexer", 5)
        words = Path(f"/proc/{pid}/cmdline").read_text()
        assert not any(word in words for word in ("busy", "memory", "hog", "inject"))
    finally:
        hog.stop()
    assert process_stat(pid) is None


def test_dies_with_its_parent():
    program = (
        "import sys, time; from injectors import hogs;"
        "print(*hogs.start('busy', 2).pids, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    with parent:
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while any(process_stat(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(process_stat(pid) for pid in pids)


def test_unknown_kind_lists_the_valid_ones():
    with pytest.raises(ValueError, match=r"'busy', .*, got 'idle'"):
        hogs.start("idle", 1)
