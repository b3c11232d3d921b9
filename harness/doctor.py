"""What can be injected, recorded and isolated on this machine, and why the rest cannot."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from importlib import metadata
from typing import Any

from cases.taxonomy import Taxonomy
from harness.sandbox.level import why_no_bubblewrap
from injectors import capabilities
from injectors.capabilities import Capability
from injectors.decoys import DECOYS
from injectors.faults import FAULTS, Injection
from injectors.matrix import CAPABILITIES

# distribution -> the extra that installs it
OPTIONAL = {"torch": "record", "triton": "record", "nvidia-ml-py": "record", "mlflow": "track"}


def isolation() -> Capability:
    """Whether diagnosers are sealed off here, as `evalharness run` finds out."""
    reason = why_no_bubblewrap()
    return Capability(reason is None, reason or "a sandbox was started")


MACHINE: dict[str, Callable[[], Capability]] = {
    "sealed isolation (bubblewrap)": isolation,
    "PyTorch jobs": capabilities.pytorch,
    "several ranks on CPUs (gloo)": capabilities.gloo,
    "several ranks on GPUs (NCCL)": capabilities.nccl,
    "CUDA devices": capabilities.cuda,
    "GPU telemetry (NVML)": capabilities.nvml,
    "network shaping (tbf)": capabilities.network_shaping,
    "network latency (netem)": capabilities.network_latency,
    "packet loss (iptables)": capabilities.packet_loss,
    "user namespaces": capabilities.user_namespaces,
    "CPU quotas (cgroup)": capabilities.cpu_quota,
    "compiled jobs (C++)": capabilities.cpp_compiler,
    "Triton interpreter": capabilities.triton_interpreter,
    "pressure stall information": capabilities.pressure,
    "run delay of processes": capabilities.run_delay,
    "two cores": lambda: capabilities.cores(2),
}


def examine() -> dict[str, list[dict[str, Any]]]:
    """Try everything for real; returns rows of `packages`, `machine`, `causes` and `decoys`."""
    taxonomy = Taxonomy.load()
    return {
        "packages": [package(name, extra) for name, extra in OPTIONAL.items()],
        "machine": [row(name, check()) for name, check in MACHINE.items()],
        "causes": [
            {**row(name, cause(name)), "domain": taxonomy.domain(name)} for name in taxonomy.causes
        ],
        "decoys": [row(name, injectable(decoy)) for name, decoy in DECOYS.items()],
    }


def package(name: str, extra: str) -> dict[str, Any]:
    """Say which version of an optional package is there, or which extra installs it."""
    try:
        return row(name, Capability(True, metadata.version(name)))
    except metadata.PackageNotFoundError:
        return row(name, Capability(False, f"pip install 'evalharness[{extra}]'"))


def cause(name: str) -> Capability:
    """Say whether a cause of the taxonomy can be injected here, and why not."""
    return injectable(FAULTS[name]) if name in FAULTS else Capability(False, "no injector yet")


def injectable(injection: type[Injection]) -> Capability:
    """Say in which jobs a fault or decoy can be injected here, or what is missing."""
    for need in ("torch", *injection.needs):
        found = torch_installed() if need == "torch" else CAPABILITIES[need]()
        if not found.ok:
            return Capability(False, f"{need}: {found.reason}")
    ranks = f" of {injection.least_ranks} ranks or more" if injection.least_ranks > 1 else ""
    return Capability(True, f"in {', '.join(injection.workloads) or 'every workload'}{ranks}")


def torch_installed() -> Capability:
    """Whether torch is there at all, without importing it."""
    found = importlib.util.find_spec("torch") is not None
    return Capability(found, "installed" if found else "pip install 'evalharness[record]'")


def row(name: str, found: Capability) -> dict[str, Any]:
    """Return one line of the report."""
    return {"name": name, "ok": found.ok, "reason": found.reason}
