"""Reading /proc: counters of processes, the host and a rank's network. Times in ns."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SECTOR_BYTES = 512
SWITCHES = {
    "voluntary_switches": "voluntary_ctxt_switches",
    "involuntary_switches": "nonvoluntary_ctxt_switches",
}
THREAD_COUNTERS = ("cpu_ns", "run_delay_ns", *SWITCHES)
IO_COUNTERS = {"read_bytes": "rchar", "write_bytes": "wchar"}


def read(path: str) -> str:
    """Return a /proc file's text, '' when the process has gone or the file is missing."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


@dataclass(frozen=True)
class ProcessStat:
    """The cheap part of a process's counters, from /proc/PID/stat."""

    name: str
    parent: int
    cpu_ns: int
    nice: int
    threads: int
    rss_bytes: int


def process_stat(pid: int) -> ProcessStat | None:
    """Read /proc/PID/stat; None when the process has gone."""
    text = read(f"/proc/{pid}/stat")
    if not text:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    fields = text[text.rindex(")") + 2 :].split()
    return ProcessStat(
        name=name,
        parent=int(fields[1]),
        cpu_ns=(int(fields[11]) + int(fields[12])) * TICK_NS,
        nice=int(fields[16]),
        threads=int(fields[17]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
    )


@dataclass(frozen=True)
class ProcessCounters:
    """Counters of one process; what could not be read is left out.

    Args:
        threads: THREAD_COUNTERS of each thread that was listed, by thread id.
        io: IO_COUNTERS of all threads together, ended ones included.
    """

    threads: dict[str, dict[str, int]]
    io: dict[str, int]


def process_counters(pid: int) -> ProcessCounters | None:
    """Read scheduling and I/O counters of a process; None when it has gone."""
    counters = {thread: thread_counters(pid, thread) for thread in threads(pid)}
    if not any(counters.values()):
        return None
    io = keyed(read(f"/proc/{pid}/io"))
    return ProcessCounters(counters, {k: io[word] for k, word in IO_COUNTERS.items() if word in io})


def thread_counters(pid: int, thread: str) -> dict[str, int]:
    """Read one thread's scheduling counters; those that can't be read are left out."""
    schedstat = read(f"/proc/{pid}/task/{thread}/schedstat").split()[:2]
    status = keyed(read(f"/proc/{pid}/task/{thread}/status"))
    counters = dict(zip(THREAD_COUNTERS, map(int, schedstat), strict=False))
    return counters | {k: status[word] for k, word in SWITCHES.items() if word in status}


def threads(pid: int) -> list[str]:
    """List the thread ids of a process."""
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 (twice as fast, called often)
    except OSError:
        return []


def affinity(pid: int) -> int | None:
    """Return on how many CPUs a process may run."""
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return None


def keyed(text: str) -> dict[str, int]:
    """Parse lines of `key: number`."""
    pairs = (line.partition(":") for line in text.splitlines())
    values = ((key, value.split()) for key, _, value in pairs)
    return {key: int(value[0]) for key, value in values if value and value[0].isdigit()}


def host_counters() -> dict[str, int]:
    """Read host-wide counters that only grow; those that the host lacks are left out."""
    cpu, *_ = read("/proc/stat").splitlines()
    user, nice, system, _, iowait, irq, softirq, steal = (int(x) for x in cpu.split()[1:9])
    counters = {
        "cpu_busy_ns": (user + nice + system + irq + softirq) * TICK_NS,
        "cpu_system_ns": (system + irq + softirq) * TICK_NS,
        "cpu_iowait_ns": iowait * TICK_NS,
        "cpu_steal_ns": steal * TICK_NS,
    }
    for resource in ("cpu", "io", "memory"):
        total = read(f"/proc/pressure/{resource}").partition("total=")[2].split()
        if total:
            counters[f"psi_{resource}_some_ns"] = int(total[0]) * 1000
    return counters | disk_counters()


def host_levels() -> dict[str, int]:
    """Read the host's present run queue and available memory."""
    running = read("/proc/loadavg").split()[3].partition("/")[0]
    available_kb = keyed(read("/proc/meminfo")).get("MemAvailable", 0)
    return {"run_queue": int(running), "memory_available_bytes": available_kb * 1024}


def disk_counters() -> dict[str, int]:
    """Sum the bytes read and written over whole block devices; empty where there is no table."""
    rows = [line.split() for line in read("/proc/diskstats").splitlines()]
    whole = [row for row in rows if len(row) > 9 and Path(f"/sys/block/{row[2]}").exists()]
    columns = {"disk_read_bytes": 5, "disk_write_bytes": 9} if rows else {}
    return {k: sum(int(row[i]) for row in whole) * SECTOR_BYTES for k, i in columns.items()}


def network_counters(pid: int, interface: str) -> dict[str, int]:
    """Read a process's interface counters, TCP retransmissions and the send queue level.

    What can't be read is left out, all of it when the process has ended.
    """
    counters: dict[str, int] = {}
    for line in read(f"/proc/{pid}/net/dev").splitlines():
        name, _, rest = line.partition(":")
        if name.strip() == interface:
            fields = [int(x) for x in rest.split()]
            counters = {"rx_bytes": fields[0], "tx_bytes": fields[8], "tx_dropped": fields[11]}
    tcp = [
        line.split()[1:] for line in read(f"/proc/{pid}/net/snmp").splitlines() if "Tcp:" in line
    ]
    if len(tcp) == 2:
        counters["retransmits"] = int(dict(zip(*tcp, strict=False)).get("RetransSegs", 0))
    header, *sockets = read(f"/proc/{pid}/net/tcp").splitlines() or [""]
    if header:
        queues = (line.split()[4].partition(":")[0] for line in sockets)
        counters["send_queue_bytes"] = sum(int(queue, 16) for queue in queues)
    return counters
