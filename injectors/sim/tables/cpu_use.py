"""CPU time of the ranks' processes, step by step: what their threads use, and wait for.

A thread that waits for its GPU asks again and again, and uses its core all the while; one that
waits for a batch, a service or a lock sleeps. NCCL's proxy threads are busy while anything goes
between hosts. Ranks that compute on CPUs sleep in collectives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from injectors.sim.cpu_time import CpuTime, threads_q16
from injectors.sim.expected import expect
from injectors.sim.job import ONE
from injectors.sim.noise import Ints
from injectors.sim.run import Run
from injectors.sim.tables.runtime import pauses_ns
from injectors.sim.tables.traffic import Traffic

# Share of a pause in which the thread sleeps; in all others it works.
SLEEPING_Q16 = {
    "idle": ONE,  # a server without requests
    "metric": ONE,
    "suspend": ONE,
    "poll": ONE,
    "respawn": ONE // 2,
    "checkpoint": ONE // 2,
}
HELPERS_Q16 = 1638  # 2.5 % of a core: watchdogs, heartbeats, pinning of batches
SOCKET_NS_A_KIB = 350  # the kernel's copying and checksums, 3 GB/s
DRIVER_Q16 = 2621  # 4 % of the threads' time is in the kernel


@dataclass(frozen=True)
class CpuUse:
    """Of each rank's own process, (steps, ranks) of int64 ns.

    Attributes:
        cpu_ns: CPU time, all threads.
        system_ns: Part of it in the kernel.
        delay_ns: Time runnable without a core.
        throttled_ns: Time that a quota held it back.
        asleep_ns: Time in which the main thread slept.
    """

    cpu_ns: Ints
    system_ns: Ints
    delay_ns: Ints
    throttled_ns: Ints
    asleep_ns: Ints


def cpu_use(run: Run, cpu: CpuTime, moved: Traffic) -> CpuUse:
    """Work out the CPU time of the ranks."""
    asleep = np.minimum(_asleep(run), run.step_ns)
    lost = cpu.losses.lost_q16 + cpu.crowd_q16 - ONE
    threads = run.step_ns - asleep
    main = threads * ONE // (ONE + lost)
    waiting = lost - cpu.throttled_q16 + threads_q16(run.job, 1) - ONE
    helpers, kernel = _helpers(run, moved)
    return CpuUse(
        cpu_ns=main + helpers + kernel,
        system_ns=(main * DRIVER_Q16 >> 16) + kernel,
        delay_ns=main * waiting >> 16,
        throttled_ns=main * cpu.throttled_q16 >> 16,
        asleep_ns=asleep,
    )


def _asleep(run: Run) -> Ints:
    if run.job.machine.gpu is None:
        busy = expect(run.program).host_ns * run.conditions[0].host_q16 >> 16
        return np.maximum(run.step_ns - busy, 0)
    asleep = np.maximum(run.waited, 0).sum(axis=1)
    for name, share in SLEEPING_Q16.items():
        asleep = asleep + (pauses_ns(run, name) * share >> 16)
    return np.asarray(asleep)


def between_hosts_ns(run: Run, moved: Traffic) -> Ints:
    """Return the time of each step with something on its way between hosts, (steps, ranks)."""
    total = np.zeros(run.step_ns.shape, np.int64)
    last = np.zeros_like(total)
    for op in run.program.ops:
        if op.path not in moved.ways or not moved.ways[op.path].crosses:
            continue
        found = run.collectives[op.path]
        begin = np.maximum(found.start, last)
        total += np.maximum(found.end - begin, 0) * (found.start >= 0)
        last = np.maximum(last, found.end)
    return np.minimum(total, run.step_ns)


def _helpers(run: Run, moved: Traffic) -> tuple[Ints, Ints]:
    """Time of the process's other threads, and of the kernel for their sockets."""
    helpers = run.step_ns * (HELPERS_Q16 + ONE * run.job.host.spinning) >> 16
    if run.job.machine.gpu is not None and run.job.places.hosts > 1:
        helpers = helpers + between_hosts_ns(run, moved)
    kernel = np.zeros_like(helpers)
    if run.job.machine.gpu is None or run.job.network.transport == "socket":
        kernel = (moved.nic_tx + moved.nic_rx) // 1024 * SOCKET_NS_A_KIB
    return np.asarray(helpers), kernel
