"""What crosses a device's PCIe link and its NVLinks in each step."""

from __future__ import annotations

import numpy as np

from injectors.sim.expected import expect
from injectors.sim.job import ONE, Job
from injectors.sim.noise import Ints
from injectors.sim.program import Program
from injectors.sim.run import Run
from injectors.sim.tables.interfaces import hosts_of
from injectors.sim.tables.traffic import Traffic, work_q16


def pcie_bytes(run: Run, moved: Traffic) -> tuple[Ints, Ints]:
    """Return bytes that devices send and receive over PCIe, (steps, ranks) each.

    Interfaces read device memory over it, copies cross it, and what has no NVLink; memory that
    does not fit lies behind it.
    """
    to_device, from_device = copied_bytes(run)
    without = ONE - nvlink_share_q16(run.job)
    spilled = _spilled_bytes(run)
    sent = moved.nic_tx + from_device + spilled + (moved.local_tx * without >> 16)
    received = moved.nic_rx + to_device + spilled + (moved.local_rx * without >> 16)
    return sent, received


def nvlink_bytes(run: Run, moved: Traffic) -> tuple[Ints, Ints]:
    """Return bytes that devices send and receive over NVLink, (steps, ranks) each."""
    share = nvlink_share_q16(run.job)
    return moved.local_tx * share >> 16, moved.local_rx * share >> 16


def nvlink_share_q16(job: Job) -> Ints:
    """Return the part of a rank's traffic within its host that takes NVLink, (ranks,).

    A device without links reaches no other one over them; the others lack that one peer.
    """
    hosts, linked = hosts_of(job), np.full(job.places.ranks, int(job.network.peer_access))
    for rank, share in job.network.nvlink_q16.items():
        linked[rank] *= share > 0
    peers = np.bincount(hosts)[hosts] - 1
    there = np.bincount(hosts, linked).astype(np.int64)[hosts] - linked
    return np.asarray(linked * ONE * there // np.maximum(peers, 1))


def copied_bytes(run: Run) -> tuple[Ints, Ints]:
    """Return bytes that copies move to and from devices, (steps, ranks) each."""
    into, out = _copies(run.program)
    saves = work_q16(run, "checkpoint") > 0 if "checkpoint" in run.program.work_rows else 0
    shape = run.step_ns.shape
    return np.broadcast_to(into, shape), out[0] + out[1] * saves


def _copies(program: Program) -> tuple[Ints, Ints]:
    """Bytes to the device, (ranks,); from it in every step and in those that save, (2, ranks)."""
    into, out = np.zeros(program.ranks, np.int64), np.zeros((2, program.ranks), np.int64)
    saving = program.work_rows.index("checkpoint") if "checkpoint" in program.work_rows else -1
    for op in program.ops:
        ranks = slice(None) if op.ranks is None else list(op.ranks)
        kernel = op.label.kernel or ""
        if kernel.startswith("Memcpy HtoD"):
            into[ranks] += op.label.bytes
        elif kernel.startswith("Memcpy DtoH"):
            out[int(op.work == saving), ranks] += op.label.bytes
    return into, out


def _spilled_bytes(run: Run) -> Ints:
    """Half of the traffic of memory that lies behind the link, each way."""
    gpu, share = run.job.machine.gpu, run.job.gpus.spill_q16
    if gpu is None or not share:
        return np.zeros(run.step_ns.shape, np.int64)
    # In MB/s, lest the product overflow.
    rate = (gpu.memory_bytes_per_s * gpu.memory_efficiency_q16 >> 16) // 10**6
    bytes_each = expect(run.program).memory_ns * rate // 1000
    return np.broadcast_to((bytes_each * share >> 16) // 2, run.step_ns.shape)
