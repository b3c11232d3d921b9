"""What a job of this kind records, and what of it is missing where a rule would need it."""

from __future__ import annotations

from collections.abc import Iterator

from cases.case import Case

# Columns without which a table does not tell causes apart.
DECISIVE: dict[str, tuple[str, ...]] = {
    "collectives": ("created_ns", "completed_ns", "bytes"),
    "gpu": ("time_ns", "power_w", "power_limit_w", "sm_clock_mhz", "event_reasons", "processes"),
    "host": ("time_ns", "cpu_busy_ns"),
    "processes": ("cpu_ns", "run_delay_ns"),
    "network": ("time_ns", "retransmits", "send_queue_bytes"),
    "loader": ("fetch_ns", "read_ns", "cpu_ns"),
    "engine": ("duration_ns", "num_preemptions"),
    "requests": ("first_token_ns", "finished_ns"),
}
# Missing together with others, these say how much was withheld, but decide nothing.
TELLING: dict[str, tuple[str, ...]] = {"runtime": ("time_ns",), "logs": ("time_ns",)}
GPU_CAUSES = ("gpu_silicon_variability", "power_cap", "thermal_throttle")
SERVER_CAUSES = ("decode_batch_kv_limited", "kv_cache_preemption", "kernel_regression")
LINK_CAUSES = ("slow_link", "rank_extra_host_work", "network_congestion", "nic_degraded")


def missing_signals(case: Case) -> tuple[str, ...]:
    """Decisive signals that the case lacks, then what else is missing; none if it can be told."""
    lacking = tuple(_lacking(case))
    return (*lacking, *_blank(case, TELLING)) if lacking else ()


def expected(case: Case) -> list[str]:
    """Signals that a job of this kind has where nothing was withheld."""
    topology, serves = case.info.topology, case.info.kind == "inference"
    names = ["processes", "trace_events"]
    if topology.ranks[0].gpu is not None:
        names += ["gpu", "host"]
    if serves:
        return [*names, "engine", "requests"]
    if len(topology.ranks) > 1:
        names.append("collectives")
    if topology.links:
        names.append("network")
    return [*names, "loader"] if case.config.get("workers") else names


def candidates(missing: tuple[str, ...]) -> tuple[str, ...]:
    """Causes that the missing signals leave."""
    tables = {signal.split(".")[0] for signal in missing}
    if tables == {"gpu"}:
        return GPU_CAUSES
    return SERVER_CAUSES if "engine" in tables else LINK_CAUSES


def _lacking(case: Case) -> Iterator[str]:
    for name in expected(case):
        if not case.has(name):
            yield name
        elif name in DECISIVE:
            yield from _blank(case, {name: DECISIVE[name]})


def _blank(case: Case, columns: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Tables that are absent, and columns without a single value."""
    for name, wanted in columns.items():
        if not case.has(name):
            yield name
            continue
        table = case.arrow(name)
        if len(table):
            yield from (f"{name}.{c}" for c in wanted if table[c].null_count == len(table))
