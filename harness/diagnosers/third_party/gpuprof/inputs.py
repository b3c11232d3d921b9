"""The rows of gpuprof's own tables: one run a rank.

Its columns on swap, page cache and disk operations stay empty: a recording has none.
"""

from __future__ import annotations

from typing import Any

from cases.case import Case
from harness.diagnosers.third_party.adapter import traces_of
from harness.diagnosers.third_party.rows import Row, rows

KIB = 1024
PHASES = {
    "dataloader_wait_s": "data_wait_ns",
    "forward_s": "forward_ns",
    "backward_s": "backward_ns",
    "optimizer_s": "optimizer_ns",
}
SAMPLES = {
    "mem_used_bytes": "memory_used_bytes",
    "mem_total_bytes": "memory_total_bytes",
    "power_w": "power_w",
    "temp_c": "temperature_c",
    "sm_clock_mhz": "sm_clock_mhz",
    "mem_clock_mhz": "memory_clock_mhz",
}
RATES = {"pcie_rx_kbps": "pcie_rx_bytes_per_s", "pcie_tx_kbps": "pcie_tx_bytes_per_s"}
HOST = ("host", "time_ns", "cores", "cpu_busy_ns", "memory_available_bytes", "disk_read_bytes")


def inputs(case: Case) -> dict[str, Any]:
    """Give rows by rank; host rows are those of the rank's host."""
    places = {str(place.rank): place.host for place in case.info.topology.ranks}
    return {
        "name": case.info.workload.name,
        "gpu": str(case.info.environment.hardware.get("gpu", "")),
        "hosts": places,
        "steps": _steps(case),
        "samples": _samples(case),
        "host_samples": _host_samples(case),
        "workers": _workers(case),
        **traces_of(case),
    }


def _steps(case: Case) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    known = ("rank", "step", "start_ns", "duration_ns")
    for row in rows(case.steps, (*known, "tokens", *PHASES.values()), known):
        step = {name: _seconds(row[column]) for name, column in PHASES.items()}
        step |= {"step": row["step"], "tokens": row["tokens"]}
        step["t_start"] = _seconds(row["start_ns"])
        step["t_end"] = _seconds(row["start_ns"] + row["duration_ns"])
        found.setdefault(str(row["rank"]), []).append(step)
    return found


def _samples(case: Case) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    known = ("rank", "time_ns")
    columns = (*known, "utilization_percent", *SAMPLES.values(), *RATES.values())
    for row in rows(case.gpu, columns, known):
        used = row["utilization_percent"]
        sample = {name: row[column] for name, column in SAMPLES.items()}
        sample |= {
            name: None if row[column] is None else row[column] // KIB
            for name, column in RATES.items()
        }
        sample |= {"t": _seconds(row["time_ns"]), "sm_util": None if used is None else used / 100}
        found.setdefault(str(row["rank"]), []).append(sample)
    return found


def _host_samples(case: Case) -> dict[str, list[Row]]:
    """CPU and disk of each host as shares and rates over the time since the sample before."""
    found: dict[str, list[Row]] = {}
    before_ns: dict[str, int] = {}
    for row in rows(case.host, HOST, ("host", "time_ns")):
        length_ns = row["time_ns"] - before_ns.get(row["host"], 0)
        before_ns[row["host"]] = row["time_ns"]
        busy, cores, read = row["cpu_busy_ns"], row["cores"], row["disk_read_bytes"]
        if length_ns <= 0:
            continue
        sample = {
            "t": _seconds(row["time_ns"]),
            "cpu_percent": 100 * busy / cores / length_ns if busy is not None and cores else None,
            "n_cpus": cores,
            "mem_available_bytes": row["memory_available_bytes"],
            "disk_read_bps": None if read is None else read * 1e9 / length_ns,
        }
        found.setdefault(row["host"], []).append(sample)
    return found


def _workers(case: Case) -> dict[str, list[Row]]:
    """CPU shares of each rank's loader workers by time, its child processes."""
    columns = ("role", "rank", "process", "time_ns", "cpu_ns")
    times: dict[int, dict[int, list[int]]] = {}
    for row in rows(case.processes, columns, ("rank", "time_ns", "cpu_ns")):
        if row["role"] == "loader_worker":
            times.setdefault(row["rank"], {}).setdefault(row["time_ns"], []).append(row["cpu_ns"])
    found: dict[str, list[Row]] = {}
    for rank, by_time in times.items():
        before_ns = 0
        for time_ns, used in sorted(by_time.items()):
            shares = [100 * cpu_ns / (time_ns - before_ns) for cpu_ns in used]
            before_ns = time_ns
            sample = {"t": _seconds(time_ns), "children_cpu_percent": sum(shares)}
            sample |= {"max_child_cpu_percent": max(shares), "n_children": len(shares)}
            found.setdefault(str(rank), []).append(sample)
    return found


def _seconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e9
