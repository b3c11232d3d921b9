import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cases.errors import ScenarioError
from injectors import capabilities, cgroups


@pytest.fixture
def spinning():
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
    yield child
    child.kill()
    child.wait()


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_quota_holds_a_busy_process_back_and_is_undone(spinning):
    found = capabilities.cpu_quota()
    if not found:
        pytest.skip(found.reason)
    with cgroups.cpu_group(f"test-{os.getpid()}") as group:
        group.add(spinning.pid)
        group.limit(0.2)
        before, began = cpu_s(spinning.pid), time.monotonic()
        time.sleep(1.5)
        share = (cpu_s(spinning.pid) - before) / (time.monotonic() - began)
        assert 0.05 < share < 0.3
        throttled = group.throttled_ns()
        assert throttled > 100_000_000  # most of 1.5 s where nobody else competes
        group.unlimit()
        time.sleep(0.3)
        settled = group.throttled_ns()
        time.sleep(0.3)
        assert group.throttled_ns() == settled
    assert not group.path.exists()
    assert spinning.poll() is None


def test_where_no_controller_is_mounted_the_error_says_so(monkeypatch):
    monkeypatch.setattr(cgroups, "_parents", list)
    with (
        pytest.raises(ScenarioError, match="no cpu controller is mounted"),
        cgroups.cpu_group("test"),
    ):
        pass


def test_a_place_that_refuses_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(cgroups, "_parents", lambda: [(2, tmp_path, tmp_path / "absent")])
    with (
        pytest.raises(ScenarioError, match="absent: No such file or directory"),
        cgroups.cpu_group("test"),
    ):
        pass
