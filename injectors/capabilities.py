"""What this machine lets us inject and record: each answer tried for real, then remembered.

A probe starts a child with a time limit and leaves nothing behind. Its reason is one phrase:
what was found, or why it does not work here, so that tests can skip and the doctor explain
with the same words.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cases.errors import ScenarioError
from injectors.cgroups import cpu_group

PROBE_LIMIT_S = 60.0
EXTRA = "pip install 'evalharness[record]'"
_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Capability:
    """Whether something works here: `reason` says what was found, or why it does not."""

    ok: bool
    reason: str

    def __bool__(self) -> bool:
        return self.ok


def simulator() -> Capability:
    """Whether what only the simulator can break can be broken for real: never."""
    return Capability(False, "--backend sim breaks it")


def attempt(
    command: Sequence[str | Path],
    found: str = "works",
    environment: dict[str, str] | None = None,
    limit_s: float = PROBE_LIMIT_S,
) -> Capability:
    """Run a command that shows a capability by exiting 0.

    The reason is `found`, else the command's last line on standard error or output.

    >>> attempt(["sh", "-c", "echo no such device >&2; exit 1"])
    Capability(ok=False, reason='no such device')
    """
    try:
        done = _run(command, environment or {}, limit_s)
    except FileNotFoundError:
        return Capability(False, f"{command[0]} is not installed")
    except subprocess.TimeoutExpired:
        return Capability(False, f"{command[0]} did not end within {limit_s:g} s")
    return Capability(True, found) if done.returncode == 0 else Capability(False, _last_line(done))


def _run(
    command: Sequence[str | Path], environment: dict[str, str], limit_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a command in a session of its own, which is killed whole at the time limit."""
    words = [str(word) for word in command]
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
    ) as child:
        try:
            output, errors = child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(words, child.returncode, output, errors)


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return lines[-1] if lines else f"exit status {done.returncode}"


@cache
def network_shaping() -> Capability:
    """Limit the bandwidth between two ranks: namespaces, a veth pair, a token bucket."""
    return _in_namespace("tbf", "token bucket on a veth pair")


@cache
def network_latency() -> Capability:
    """Delay packets between two ranks with the kernel's netem."""
    return _in_namespace("netem", "netem on a veth pair")


@cache
def packet_loss() -> Capability:
    """Drop packets between two ranks with iptables' statistic match."""
    return _in_namespace("statistic", "iptables statistic match on a veth pair")


def _in_namespace(rule: str, found: str) -> Capability:
    probe = Path(__file__).with_name("namespace_probe.py")
    return attempt([sys.executable, "-I", probe, rule], found)


@cache
def user_namespaces() -> Capability:
    """Enter user, network and mount namespaces without privileges."""
    return attempt(["unshare", "-Urnm", "true"], "unshare -Urnm")


@cache
def bubblewrap() -> Capability:
    """Start a sandbox without network, in which only the root file system can be read."""
    sandbox = "bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all --die-with-parent true"
    return attempt(sandbox.split(), "a sandbox was started")


@cache
def cpu_quota() -> Capability:
    """Hold a process back by a CPU quota of a control group."""
    holder = subprocess.Popen(["sleep", "60"])
    try:
        with cpu_group(f"probe-{os.getpid()}") as group:
            group.add(holder.pid)
            group.limit(0.5)
            found = Capability(True, f"cgroup v{group.version} at {group.path.parent}")
    except ScenarioError as error:
        found = Capability(False, error.found or str(error))
    except OSError as error:
        found = Capability(False, f"{error.filename}: {error.strerror}")
    finally:
        holder.kill()
        holder.wait()
    return found


def cores(at_least: int) -> Capability:
    """Have `at_least` CPU cores that this process may use."""
    usable = len(os.sched_getaffinity(0))
    return Capability(usable >= at_least, f"{usable} usable, {at_least} needed")


@cache
def pressure() -> Capability:
    """Read the kernel's pressure stall information."""
    return _readable(Path("/proc/pressure/cpu"), "some avg10=")


@cache
def run_delay() -> Capability:
    """Read how long a process waited for a CPU, from /proc/<pid>/schedstat."""
    return _readable(Path("/proc/self/schedstat"), "")


def _readable(path: Path, start: str) -> Capability:
    try:
        text = path.read_text()
    except OSError as error:
        return Capability(False, f"{path}: {error.strerror}")
    return Capability(text.startswith(start), str(path))


@cache
def cpp_compiler() -> Capability:
    """Build a shared library with OpenMP, as torch.compile does on CPUs."""
    compiler = os.environ.get("CXX", "g++")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text("#include <omp.h>\nint probe() { return omp_get_max_threads(); }\n")
        library = Path(folder, "probe.so")
        flags = ["-fopenmp", "-shared", "-fPIC"]
        return attempt([compiler, source, *flags, "-o", library], compiler)


@cache
def torch_facts() -> dict[str, Any]:
    """Ask a child what torch can do here; empty where torch is missing or broken.

    Keys: version, cuda (version or null), devices (names), nccl, gloo (flags), and `error`
    alone where importing failed.
    """
    program = (
        "import json, torch, torch.distributed as d\n"
        "print(json.dumps({'version': torch.__version__, 'cuda': torch.version.cuda,"
        " 'devices': [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],"
        " 'nccl': d.is_available() and d.is_nccl_available(),"
        " 'gloo': d.is_available() and d.is_gloo_available()}))"
    )
    try:
        done = _run([sys.executable, "-I", "-c", program], {}, PROBE_LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"error": f"importing torch did not end within {PROBE_LIMIT_S:g} s"}
    if done.returncode == 0:
        facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return facts
    return {"error": _name_extra(_last_line(done))}


def pytorch() -> Capability:
    """Run PyTorch jobs."""
    facts = torch_facts()
    return Capability("error" not in facts, str(facts.get("error") or facts["version"]))


def gloo() -> Capability:
    """Run several ranks on CPUs, connected by gloo."""
    return _torch_part("gloo", "this torch is built without gloo")


def nccl() -> Capability:
    """Run several ranks on GPUs, connected by NCCL."""
    return _torch_part("nccl", "this torch is built without NCCL")


def _torch_part(name: str, why_not: str) -> Capability:
    facts = torch_facts()
    if "error" in facts:
        return pytorch()
    return Capability(facts[name], f"in torch {facts['version']}" if facts[name] else why_not)


def cuda(at_least: int = 1) -> Capability:
    """Have `at_least` CUDA devices that torch can see."""
    facts = torch_facts()
    if "error" in facts:
        return pytorch()
    if facts["cuda"] is None:
        return Capability(False, f"torch {facts['version']} is built for CPUs")
    names = facts["devices"]
    found = f"{len(names)} visible, {at_least} needed"
    return Capability(len(names) >= at_least, ", ".join([found, *dict.fromkeys(names)]))


@cache
def nvml() -> Capability:
    """Sample GPUs through NVML."""
    program = (
        f"import sys; sys.path.insert(0, {str(_ROOT)!r})\n"
        "from injectors.recorder.nvml import NvmlSampler\n"
        "NvmlSampler.open().close()"
    )
    found = attempt([sys.executable, "-I", "-c", program], "NVML answers")
    return Capability(found.ok, _name_extra(found.reason))


@cache
def triton_interpreter() -> Capability:
    """Run Triton kernels on a CPU, for tests of their results."""
    program = "import triton, triton.runtime.interpreter"
    found = attempt(
        [sys.executable, "-I", "-c", program], "imports", environment={"TRITON_INTERPRET": "1"}
    )
    return Capability(found.ok, _name_extra(found.reason))


def _name_extra(line: str) -> str:
    """Turn the last line of a traceback into a reason.

    >>> _name_extra("ModuleNotFoundError: No module named 'torch'")
    "No module named 'torch': pip install 'evalharness[record]'"
    >>> _name_extra("cases.errors.InputError: must hold")
    'must hold'
    """
    name, colon, reason = line.partition(": ")
    bare = reason if colon and name.replace(".", "").isidentifier() else line
    return f"{bare}: {EXTRA}" if name == "ModuleNotFoundError" else bare
