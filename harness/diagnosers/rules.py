"""A short decision list that reads a step as an engineer would: the one to copy.

It asks whether the job is slower than its reference run, then what grew: waiting for data,
operators, competition for the host, collectives. Each rule is a few queries whose numbers are
its evidence. Where the signals that decide are missing it abstains and names them; it abstains
too where there is no reference run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from cases.case import Case
from cases.schema import JOB, Diagnosis, Evidence, Finding, Locus

SLOWER = 1.06  # below, a recording is taken for noise

SLOWDOWN = """SELECT (SELECT avg(duration_ns) FROM steps WHERE step > 0)
       / (SELECT avg(duration_ns) FROM reference.steps WHERE step > 0)"""
WAIT_SHARE = """SELECT (SELECT avg(data_wait_ns) FROM steps WHERE step > 0)
       / (SELECT avg(duration_ns) FROM steps WHERE step > 0)"""
READ_SHARE = "SELECT sum(read_ns) * 1.0 / sum(fetch_ns) FROM loader"
READ_GROWTH = """SELECT (SELECT avg(read_ns) FROM loader)
       / (SELECT avg(read_ns) FROM reference.loader)"""
DECODE_GROWTH = """SELECT (SELECT avg(cpu_ns) FROM loader)
       / (SELECT avg(cpu_ns) FROM reference.loader)"""
OPERATOR_GROWTH = """SELECT
         (SELECT count(*) FROM trace_events WHERE category IN ('cpu_op', 'kernel')) * 1.0
       / (SELECT count(*) FROM reference.trace_events WHERE category IN ('cpu_op', 'kernel'))"""
OTHERS_CORES = """SELECT sum(cpu_ns) * 1.0 / (SELECT max(time_ns) FROM host)
       FROM processes WHERE role = 'other' AND nice <= 0"""
DELAY_GROWTH = """SELECT
         (SELECT sum(run_delay_ns) * 1.0 / sum(cpu_ns) FROM processes WHERE role <> 'other')
       - (SELECT sum(run_delay_ns) * 1.0 / sum(cpu_ns) FROM reference.processes
          WHERE role <> 'other')"""
COLLECTIVE_GROWTH = """SELECT (SELECT min(t) FROM (SELECT avg(completed_ns - created_ns) AS t
                                     FROM collectives GROUP BY rank))
       / (SELECT min(t) FROM (SELECT avg(completed_ns - created_ns) AS t
                              FROM reference.collectives GROUP BY rank))"""
QUEUED = """SELECT max(q) FROM (SELECT avg(send_queue_bytes) AS q FROM network GROUP BY rank)"""

Rule = Callable[[Case], Finding | None]


def diagnose(case: Case) -> Diagnosis:
    """Apply the rules in order; the first that holds is the answer."""
    if case.reference is None:  # every rule compares
        return Diagnosis(verdict="abstain", confidence=0.5)
    slowdown = number(case, SLOWDOWN)
    if slowdown < SLOWER:
        return Diagnosis(verdict="healthy", confidence=0.9)
    missing = [signal for signal in needed(case) if not case.has(signal)]
    if missing:
        return Diagnosis(
            verdict="abstain", confidence=0.9, missing_signals=tuple(missing), candidates=RIVALS
        )
    for rule in RULES:
        finding = rule(case)
        if finding is not None:
            found = finding.model_copy(update={"lost_fraction": 1 - 1 / slowdown})
            return Diagnosis(verdict="faulty", findings=(found,), confidence=finding.confidence)
    return Diagnosis(verdict="abstain", confidence=0.3)


def needed(case: Case) -> list[str]:
    """Signals without which the rules can't tell causes apart in this job."""
    signals = ["processes", "trace_events"]
    if len(case.info.topology.ranks) > 1:
        signals += ["collectives", "network"]
    if "workers" in case.config:
        signals.append("loader")
    return signals


def slow_storage(case: Case) -> Finding | None:
    """Workers wait in reads, and the ranks wait for them."""
    if not case.has("loader") or number(case, WAIT_SHARE) < 0.05:
        return None
    if number(case, READ_SHARE) < 0.5 or number(case, READ_GROWTH) < 2:
        return None
    evidence = (
        cite(case, READ_GROWTH, "a batch's reads take this many times as long"),
        cite(case, WAIT_SHARE, "share of the step in which ranks wait for data"),
    )
    return Finding(cause="storage_fetch_stall", locus=JOB, confidence=0.9, evidence=evidence)


def costly_decode(case: Case) -> Finding | None:
    """Workers need more CPU for a batch than they did."""
    if not case.has("loader") or number(case, DECODE_GROWTH) < 1.5:
        return None
    evidence = (cite(case, DECODE_GROWTH, "a batch costs workers this many times the CPU time"),)
    return Finding(cause="dataloader_cpu_bound", locus=JOB, confidence=0.9, evidence=evidence)


def more_operators(case: Case) -> Finding | None:
    """The same step runs more operators."""
    if number(case, OPERATOR_GROWTH) < 1.1:
        return None
    evidence = (cite(case, OPERATOR_GROWTH, "as many steps run this many times the operators"),)
    return Finding(cause="unfused_kernels", locus=JOB, confidence=0.85, evidence=evidence)


def competition(case: Case) -> Finding | None:
    """Other processes are busy at ordinary priority: for the cores, or for memory."""
    if number(case, OTHERS_CORES) - number(case, of_reference(OTHERS_CORES)) < 0.1:
        return None
    evidence = (
        cite(case, OTHERS_CORES, "cores that processes outside the job use"),
        cite(case, DELAY_GROWTH, "growth of the time waited for a core per CPU time"),
    )
    if number(case, DELAY_GROWTH) > 0.1:
        return Finding(
            cause="cpu_contention_colocated",
            locus=delayed(case),
            confidence=0.85,
            evidence=evidence,
        )
    return Finding(
        cause="memory_bandwidth_contention", locus=JOB, confidence=0.7, evidence=evidence
    )


def slow_network(case: Case) -> Finding | None:
    """Collectives take longer on every rank while bytes wait to be sent."""
    if not case.has("collectives") or number(case, COLLECTIVE_GROWTH) < 1.3:
        return None
    evidence = (
        cite(case, COLLECTIVE_GROWTH, "even the quickest rank's collectives take this many times"),
        cite(case, QUEUED, "bytes that wait in a rank's send queue"),
    )
    return Finding(cause="slow_link", locus=queueing(case), confidence=0.8, evidence=evidence)


RULES: tuple[Rule, ...] = (slow_storage, costly_decode, more_operators, competition, slow_network)
RIVALS = (
    "cpu_contention_colocated",
    "memory_bandwidth_contention",
    "slow_link",
    "storage_fetch_stall",
    "dataloader_cpu_bound",
    "unfused_kernels",
)


def delayed(case: Case) -> Locus:
    """The ranks that wait for a core much more than the others do, or the whole job."""
    growth = waiting(case.processes) - waiting(case.reference.processes if case.reference else None)
    ranks = tuple(growth.index[growth > growth.max() / 2].astype(int).tolist())
    return JOB if len(ranks) == len(growth) else Locus(scope="rank", ranks=ranks)


def waiting(processes: pd.DataFrame | None) -> pd.Series[float]:
    """Time runnable but not running per CPU time, by rank."""
    if processes is None:
        return pd.Series(dtype=float)
    own = processes[processes["role"] == "rank"].groupby("rank")[["run_delay_ns", "cpu_ns"]].sum()
    return own["run_delay_ns"] / own["cpu_ns"]


def queueing(case: Case) -> Locus:
    """The only link there is, or the one at the rank with the fullest send queue."""
    links = case.info.topology.links
    if len(links) > 1:
        queues = case.network.groupby("rank")["send_queue_bytes"].mean().sort_values()
        rank = queues.index.astype(int).tolist()[-1]
        links = tuple(link for link in links if rank in link.ranks)
    return Locus(scope="link", links=tuple(link.name for link in links))


def of_reference(sql: str) -> str:
    """Ask the same of the reference run."""
    return sql.replace("FROM ", "FROM reference.")


def number(case: Case, sql: str) -> float:
    """The query's one number; 0 where it has none."""
    value: Any = case.sql(sql).iat[0, 0]
    return 0.0 if pd.isna(value) else float(value)


def cite(case: Case, sql: str, says: str) -> Evidence:
    """State a query with the number that it gives here."""
    return Evidence(sql=" ".join(sql.split()), value=number(case, sql), says=says)
