"""Rules on hosts: who takes the cores, the memory or the time of the job's processes."""

from __future__ import annotations

from harness.diagnosers.features.facts import Facts
from harness.diagnosers.rules.rule import Rule

WAITS = 0.1  # growth of run delay over CPU time from which on a process wants for cores


def _want_cores(f: Facts) -> bool:
    return f["delay.max"] > WAITS or f["worker_delay.max"] > WAITS


HOSTS: tuple[Rule, ...] = (
    Rule(
        "cgroup_cpu_throttle",
        lambda f: f["throttled.max"] > 0.05,
        cites=("throttled.max",),
        scope="rank",
        place="worker_delay",
        rivals=(("cpu_contention_colocated", "a quota holds the job back, not another process"),),
    ),
    Rule(
        "thread_oversubscription",
        lambda f: f["threads.max"] > 60 and _want_cores(f),
        cites=("threads.max", "delay.max"),
        rivals=(("cpu_contention_colocated", "the job's own threads are the ones in the way"),),
    ),
    Rule(
        "rank_affinity_overlap",
        lambda f: f["affinity.min"] < 0.5 and f["delay.max"] > WAITS,
        cites=("affinity.min", "delay.max"),
        scope="rank",
        place="delay",
        rivals=(("cpu_contention_colocated", "ranks share the core that they may use"),),
    ),
    Rule(
        "worker_affinity_pinned",
        lambda f: f["worker_affinity.min"] < 0.9 and f["worker_delay.max"] > WAITS,
        cites=("worker_affinity.min", "worker_delay.max"),
        rivals=(("cpu_contention_colocated", "workers wait for each other on few cores"),),
    ),
    Rule(
        "cpu_contention_colocated",
        lambda f: f["foreign.max"] > f.busy and _want_cores(f),
        cites=("foreign.max", "worker_delay.max"),
        scope="host",
        place="foreign",
        rivals=(("memory_bandwidth_contention", "the job's processes wait for cores"),),
    ),
    Rule(
        "memory_bandwidth_contention",
        lambda f: f["foreign.max"] > f.busy and f["memory_moved.max"] > 10,
        cites=("memory_moved.max", "foreign.max"),
        scope="host",
        place="memory_moved",
        rivals=(("cpu_contention_colocated", "no process of the job waits for a core"),),
    ),
    Rule(
        "monitoring_interference",
        lambda f: f["polling.max"] > 0.04,
        cites=("polling.max",),
        scope="host",
        place="polling",
        rivals=(("cpu_contention_colocated", "agents that read, and no others, use more CPU"),),
    ),
    Rule(
        "cpu_low_frequency",
        lambda f: ((
            f["job.launch_call.growth"] > 1.25
        )
        and f["job.operator_usual"] > 1.15)
        or (f.whole_host_decode > 1.2 and f["decode.min"] < 1.1),
        cites=("decode.max",),
        scope="host",
        place="decode",
        rivals=(("cpu_contention_colocated", "nobody else uses the cores"),),
    ),
    Rule(
        "numa_misplacement",
        lambda f: (
            f["decode.max"] > 1.07 and f["decode.min"] < 1.05 and f["uneven_workers.max"] < 0.5
        ),
        cites=("decode.max",),
        scope="rank",
        place="decode",
        rivals=(("cpu_low_frequency", "other ranks of the host decode as fast as before"),),
    ),
)  # fmt: skip
PAUSES: tuple[Rule, ...] = (
    Rule(
        "process_suspended",
        lambda f: f["asleep.max"] > 0.5 * (f["slowdown"] - 1)
        and f["spike.max"] > 0.5 * (f["slowdown"] - 1)
        and f["gap.max"] < 0.3 * (f["slowdown"] - 1)
        and f["data_wait.max"] < 0.3 * (f["slowdown"] - 1),
        cites=("asleep.max",),
        scope="rank",
        place="asleep",
        rivals=(("cgroup_cpu_throttle", "no quota holds it back"),),
        sure=0.7,
    ),
)  # fmt: skip
