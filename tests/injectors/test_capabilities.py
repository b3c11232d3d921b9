import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from injectors import capabilities
from injectors.capabilities import Capability, attempt

PROBE = Path(capabilities.__file__).with_name("namespace_probe.py")


def interfaces():
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


def test_a_command_that_works_has_the_reason_given():
    assert attempt(["true"], "found it") == Capability(True, "found it")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["no-such-program-here"], "no-such-program-here is not installed"),
        (["sh", "-c", "echo a; echo b; exit 3"], "b"),
        (["sh", "-c", "exit 3"], "exit status 3"),
    ],
)
def test_a_command_that_fails_says_why(command, reason):
    assert attempt(command) == Capability(False, reason)


def test_the_time_limit_kills_grandchildren_too(tmp_path):
    pid_file = tmp_path / "pid"
    script = f"sleep 300 & echo $! > {pid_file}; wait"
    began = time.monotonic()
    found = attempt(["sh", "-c", script], limit_s=0.5)
    assert found == Capability(False, "sh did not end within 0.5 s")
    assert time.monotonic() - began < 10
    deadline = time.monotonic() + 5
    stat = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    while stat.exists() and " Z " not in stat.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not stat.exists() or " Z " in stat.read_text()


@pytest.mark.parametrize("rule", ["tbf", "netem", "statistic"])
def test_a_probe_of_the_network_leaves_no_interface(rule):
    before = interfaces()
    attempt([sys.executable, "-I", PROBE, rule])
    assert interfaces() == before


def test_the_network_can_be_shaped_or_the_failed_step_is_named():
    found = capabilities.network_shaping()
    if not found:
        assert found.reason.startswith("`")
        pytest.skip(found.reason)
    assert found.reason == "token bucket on a veth pair"


def test_missing_tools_are_named(tmp_path):
    probe = tmp_path / "probe.py"  # the shipped one looks where only root's PATH leads, too
    probe.write_text(Path(PROBE).read_text().replace('"/usr/sbin", "/sbin"', '""'))
    found = attempt([sys.executable, "-I", probe, "tbf"], environment={"PATH": str(tmp_path)})
    if "unshare" in found.reason:
        pytest.skip(found.reason)
    assert found.reason.endswith("ip is not installed")


def test_an_ordinary_user_gets_an_answer_too():
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    python = Path("/usr/bin/python3")  # one that every user may start
    if not python.exists():
        pytest.skip(f"{python} is missing")
    done = subprocess.run(
        [python, "-I", "-"],
        user=65534,
        group=65534,
        extra_groups=[],
        input=PROBE.read_text().replace("sys.argv[1]", "'tbf'"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 or done.stdout.startswith("`"), done.stderr


def test_cores_are_those_of_this_process():
    allowed = len(os.sched_getaffinity(0))
    assert capabilities.cores(allowed)
    refused = capabilities.cores(allowed + 1)
    assert not refused
    assert refused.reason == f"{allowed} usable, {allowed + 1} needed"


def test_torch_for_cpus_has_no_cuda_and_says_so():
    torch = pytest.importorskip("torch", reason="needs evalharness[record]")
    found = capabilities.cuda()
    assert found.ok == torch.cuda.is_available()
    if torch.version.cuda is None:
        assert found.reason == f"torch {torch.__version__} is built for CPUs"
    assert not capabilities.cuda(1000)


def test_a_compiler_that_fails_is_no_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "false")
    capabilities.cpp_compiler.cache_clear()
    found = capabilities.cpp_compiler()
    capabilities.cpp_compiler.cache_clear()
    assert found == Capability(False, "exit status 1")
