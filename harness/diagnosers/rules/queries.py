"""Facts as SQL: what a finding cites, so that anyone can ask again.

A metric is a SELECT of `place` and `v`, one row a rank (or host); `{run}` is "" or "reference.".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from cases.case import Case
from cases.errors import QueryError
from cases.schema import Evidence
from harness.diagnosers.features.metrics import METRICS

STEPS = "(SELECT count(DISTINCT step) FROM {run}steps)"
STEP_NS = "(SELECT avg(duration_ns) FROM {run}steps WHERE step > 0)"
LENGTH_NS = "(SELECT max(time_ns) - min(time_ns) FROM {run}processes)"
LIMIT = 1000


def _by_rank(value: str, table: str, where: str = "") -> str:
    return f"SELECT rank AS place, {value} AS v FROM {{run}}{table} {where} GROUP BY rank"


def _steps(column: str) -> str:
    return _by_rank(f"avg({column})", "steps", "WHERE step > 0")


def _process(value: str, role: str) -> str:
    return _by_rank(value, "processes", f"WHERE role = '{role}'")


def _others(condition: str) -> str:
    """Cores that others use on each host that ranks run on."""
    return (
        "SELECT host AS place, coalesce(sum(cpu_ns) FILTER (role = 'other' AND "
        f"{condition}), 0) / {LENGTH_NS} AS v FROM {{run}}processes GROUP BY host"
    )


def _event(value: str, condition: str) -> str:
    return (
        f"SELECT rank AS place, coalesce({value}, 0) / {STEPS} AS v FROM (SELECT DISTINCT rank"
        f" FROM {{run}}steps) LEFT JOIN (SELECT * FROM {{run}}runtime WHERE {condition})"
        " USING (rank) GROUP BY rank"
    )


QUERIES: dict[str, str] = {
    "checkpoint": _steps("checkpoint_ns"),
    "data_wait": _steps("data_wait_ns"),
    "optimizer": _steps("optimizer_ns"),
    "computing": _steps("forward_ns + backward_ns"),
    "gap_spike": (
        "SELECT rank AS place, avg(gap) - quantile_disc(gap, 0.4) AS v FROM (SELECT rank,"
        " duration_ns - data_wait_ns - forward_ns - backward_ns - optimizer_ns"
        " - coalesce(checkpoint_ns, 0) AS gap FROM {run}steps WHERE step > 0) GROUP BY rank"
    ),
    "forward_spike": _by_rank(
        "avg(forward_ns) - quantile_disc(forward_ns, 0.4)", "steps", "WHERE step > 0"
    ),
    "hot": _by_rank("avg((event_reasons & 96 > 0)::INT)", "gpu"),
    "capped": _by_rank("avg((event_reasons & 4 > 0)::INT)", "gpu"),
    "clock": _by_rank("avg(sm_clock_mhz)", "gpu"),
    "power_limit": _by_rank("max(power_limit_w)", "gpu"),
    "users": _by_rank("median(processes)", "gpu"),
    "memory_used": _by_rank("max(memory_used_bytes * 1.0 / memory_total_bytes)", "gpu"),
    "pcie_lanes": _by_rank("max(pcie_generation) * 1.0 * max(pcie_width)", "gpu"),
    "nvlink": _by_rank(f"max(nvlink_tx_bytes) * 1.0 / {STEPS}", "gpu"),
    "delay": _process("sum(run_delay_ns) * 1.0 / sum(cpu_ns)", "rank"),
    "threads": _process("max(threads) * 1.0", "rank"),
    "affinity": _process("min(affinity) * 1.0", "rank"),
    "written": _process(f"sum(write_bytes) / {LENGTH_NS} * {STEP_NS} / 1e6", "rank"),
    "asleep": _process(
        f"{STEP_NS} * (1 - (sum(cpu_ns) + sum(run_delay_ns)) * 1.0 / {LENGTH_NS})", "rank"
    ),
    "worker_delay": _process("sum(run_delay_ns) * 1.0 / sum(cpu_ns)", "loader_worker"),
    "worker_affinity": _process("min(affinity) * 1.0", "loader_worker"),
    "worker_processes": _process("count(DISTINCT process) * 1.0", "loader_worker"),
    "foreign": _others("nice < 10 AND read_bytes <= 1e-4 * cpu_ns"),
    "polling": _others("nice < 10 AND read_bytes > 1e-4 * cpu_ns"),
    "throttled": (
        f"SELECT host AS place, sum(cgroup_throttled_ns) * 1.0 / {LENGTH_NS} AS v"
        " FROM {run}host GROUP BY host"
    ),
    "memory_moved": (
        "SELECT host AS place, avg(memory_bandwidth_bytes_per_s) / 1e9 AS v"
        " FROM {run}host GROUP BY host"
    ),
    "resent": _by_rank("1448.0 * sum(retransmits) / sum(tx_bytes)", "network"),
    "dropped": _by_rank("4096.0 * sum(tx_dropped) / sum(tx_bytes)", "network"),
    "queue": _by_rank("avg(send_queue_bytes)", "network", "WHERE send_queue_bytes > 0"),
    "fetch_mean": _by_rank("avg(fetch_ns)", "loader"),
    "read": _by_rank("avg(read_ns)", "loader"),
    "read_share": _by_rank("sum(read_ns) * 1.0 / sum(fetch_ns)", "loader"),
    "read_bytes": _by_rank("avg(read_bytes)", "loader"),
    "decode": _by_rank("quantile_cont(cpu_ns, 0.25)", "loader"),
    "workers": _by_rank("count(DISTINCT worker) * 1.0", "loader"),
    "uneven_workers": (
        "SELECT rank AS place, max(least) / min(least) AS v FROM (SELECT rank,"
        " quantile_cont(fetch_ns, 0.2) AS least FROM {run}loader GROUP BY rank, worker)"
        " GROUP BY rank"
    ),
    "collected": _event("sum(duration_ns)", "event = 'gc'"),
    "recompiles": _event("count(event)", "event = 'recompile'"),
    "retries": _event("count(event)", "event = 'allocator_retry'"),
    "expert_share": (
        "SELECT rank AS place, sum(value) / avg(sum(value)) OVER () AS v FROM {run}runtime"
        " WHERE event = 'expert_tokens' GROUP BY rank"
    ),
    "embedding_share": (
        "SELECT rank AS place, sum(value) / avg(sum(value)) OVER () AS v FROM {run}runtime"
        " WHERE event = 'embedding_rows' GROUP BY rank"
    ),
    "length_spread": _by_rank(
        "stddev(value) / avg(value)",
        "runtime",
        "WHERE event = 'sequence_lengths' AND detail = 'sum of squares'",
    ),
    "padded": (
        "SELECT rank AS place, avg(tokens) / (SELECT avg(value) FROM {run}runtime"
        " WHERE event = 'sequence_lengths' AND detail = 'sum') AS v"
        " FROM {run}steps WHERE step > 0 GROUP BY rank"
    ),
    "bytes": _by_rank(f"sum(bytes) * 1.0 / {STEPS}", "collectives"),
    "calls": _by_rank(f"count(*) * 1.0 / {STEPS}", "collectives"),
    "small_calls": _by_rank(
        f"count(*) FILTER (bytes < 4096) * 1.0 / {STEPS}", "collectives"
    ),
    "asked_late_least": (
        "SELECT rank AS place, quantile_cont(late, 0.2) AS v FROM (SELECT rank, created_ns"
        " - median(created_ns) OVER (PARTITION BY process_group, seq) AS late"
        " FROM {run}collectives) GROUP BY rank"
    ),
}  # fmt: skip
# Numbers of the whole job; `now` and `then` are put together as their suffix says.
KERNELS = "SELECT count(*) * 1.0 FROM {run}trace_events WHERE category = 'kernel' AND "
CALLS = "SELECT count(*) * 1.0 FROM {run}trace_events WHERE "
LINES = "SELECT count(DISTINCT message) FROM {run}logs WHERE regexp_matches(message, '%s')"
JOB: dict[str, str] = {
    "kernels": KERNELS + "name NOT LIKE 'nccl%'",
    "products": KERNELS + "regexp_matches(name, 'gemm|scudnn|implicit|convolve')",
    "wide_products": KERNELS + "regexp_matches(name, 'sgemm|scudnn|tf32|s1688')",
    "updates": KERNELS + "name LIKE '%multi_tensor_apply%'",
    "fused_attention": KERNELS + "regexp_matches(name, 'flash|fmha')",
    "operators": CALLS + "category = 'cpu_op'",
    "checks": CALLS + "name = 'aten::isnan'",
    "value_reads": CALLS + "name = 'aten::_local_scalar_dense'",
    "stream_waits": CALLS + "name IN ('cudaStreamSynchronize', 'cudaDeviceSynchronize')",
    "pageable_copies": CALLS + "category = 'gpu_memcpy' AND name LIKE '%HtoD (Pageable%'",
    "hidden_share": (
        "SELECT sum(hidden) / sum(length) FROM (SELECT any_value(c.duration_ns) AS length,"
        " coalesce(sum(least(c.start_ns + c.duration_ns, k.start_ns + k.duration_ns)"
        " - greatest(c.start_ns, k.start_ns)) FILTER (k.start_ns IS NOT NULL), 0) AS hidden"
        " FROM (FROM {run}trace_events WHERE category = 'kernel' AND name LIKE 'nccl%') c"
        " LEFT JOIN (FROM {run}trace_events WHERE category = 'kernel' AND name NOT LIKE 'nccl%') k"
        " ON k.rank = c.rank AND k.start_ns < c.start_ns + c.duration_ns"
        " AND c.start_ns < k.start_ns + k.duration_ns GROUP BY c.rank, c.start_ns)"
    ),
    "transfer_growth": (
        "SELECT sum(ns) / (SELECT count(DISTINCT step) FROM {run}steps) FROM (SELECT"
        " min(completed_ns - coalesce(started_ns, created_ns)) AS ns FROM {run}collectives"
        " GROUP BY process_group, seq)"
    ),
    "over_sockets": LINES % "NCCL INFO.*via NET/Socket",
    "over_host_memory": LINES % "NCCL INFO.*via SHM",
    "collectives_set": LINES % "NCCL INFO.*NCCL_(ALGO|PROTO|M(AX|IN)_NCHANNELS|NTHREADS|BUFFSIZE)",
    "left_eager": LINES % "recompile_limit",
    "saves_beside": LINES % "saving checkpoint",
    "preemptions_in_step": "SELECT avg(num_preemptions) FROM {run}engine",
    "prefill_in_step": "SELECT avg(prefill_tokens) FROM {run}engine",
    "hit_share": (
        "SELECT sum(prefix_cache_hits) * 1.0 / sum(prefix_cache_queries) FROM {run}engine"
    ),
    "accepted_share": "SELECT sum(accepted_tokens) * 1.0 / sum(draft_tokens) FROM {run}engine",
    "scheduler_time": "SELECT avg(scheduler_ns) FROM {run}engine",
    "running": "SELECT avg(num_requests_running) FROM {run}engine",
    "waiting": "SELECT avg(num_requests_waiting) FROM {run}engine",
    "token_time": (
        "SELECT avg((finished_ns - first_token_ns) * 1.0 / (generation_tokens - 1))"
        " FROM {run}requests WHERE generation_tokens > 1"
    ),
}
SLOWDOWN = (
    "SELECT (SELECT avg(duration_ns) FROM steps WHERE step > 0)"
    " / (SELECT avg(duration_ns) FROM reference.steps WHERE step > 0)"
)
_LOW = (
    "SELECT name, min(low) AS low, sum(took) AS took FROM (SELECT rank, name,"
    " quantile_cont(duration_ns, 0.2) AS low, sum(duration_ns) AS took FROM {run}trace_events"
    " WHERE category = 'kernel' AND name NOT LIKE 'nccl%' GROUP BY rank, name) GROUP BY name"
)
KERNEL_MOST = (
    f"SELECT max(here.low / there.low) FROM (SELECT *, took / sum(took) OVER () AS share"
    f" FROM ({_LOW.format(run='')})) AS here JOIN ({_LOW.format(run='reference.')}) AS there"
    " USING (name) WHERE here.share > 0.03"
)
OVER_RANKS = {"max": "max", "min": "min", "median": "median"}


def query_of(fact: str, compared: bool) -> str | None:
    """The query of a fact such as `hot.max` or `job.kernels.growth`; None if it has none.

    Args:
        compared: Whether there is a reference run to compare with.
    """
    head, _, rest = fact.partition(".")
    if fact == "job.kernel_most":
        return KERNEL_MOST if compared else None
    if head in ("job", "said"):
        known = JOB.get(rest.split(".")[0])
        return None if known is None else _of_job(known, compared)
    inner = QUERIES.get(head)
    return (
        None if inner is None else _of_ranks(inner, OVER_RANKS[rest], METRICS[head].unit, compared)
    )


def _of_job(inner: str, compared: bool) -> str:
    now, then = inner.format(run=""), inner.format(run="reference.")
    if not compared:
        return now
    return f"SELECT ({now}) / coalesce(nullif(({then}), 0), 1)"  # where there was none, how many


def _of_ranks(inner: str, reduce: str, unit: str, compared: bool) -> str:
    now, then = inner.format(run=""), inner.format(run="reference.")
    if not compared:
        return f"SELECT {reduce}(v) FROM ({now})"
    change = {
        "ratio": "here.v / there.v",
        "level": "here.v - there.v",
        "step": f"(here.v - there.v) / {STEP_NS.format(run='reference.')}",
    }[unit]
    return f"SELECT {reduce}({change}) FROM ({now}) AS here JOIN ({then}) AS there USING (place)"


def cited(case: Case, queries: Iterable[tuple[str, str]], tolerance: float) -> tuple[Evidence, ...]:
    """What queries say (`says`, SQL), each with the number that it gives here, if it gives one."""
    stated = [(says, sql, number(case, sql)) for says, sql in queries]
    return tuple(
        Evidence(sql=sql, value=value, tolerance=tolerance, says=says)
        for says, sql, value in stated
        if math.isfinite(value)
    )


def number(case: Case, sql: str) -> float:
    """The query's one number, NaN where it has none."""
    try:
        value: Any = case.sql(sql).iat[0, 0]
    except QueryError:  # nothing to divide by, say
        return math.nan
    return math.nan if pd.isna(value) else float(value)
