"""What `evalharness cases list` and `show` tell of cases, as plain documents."""

from __future__ import annotations

from typing import Any

from cases.bundle import Suite
from cases.case import Case, Recording
from cases.tables import TABLES
from harness.judge import Truth
from harness.step_time import mean_step_ns, slowdown

DIGEST_SHOWN = 12
TOP_EVENTS = """
    SELECT category, name, count(*) AS events, sum(duration_ns) / 1e6 AS total_ms
    FROM trace_events
    WHERE category IN ('cpu_op', 'kernel', 'cuda_runtime', 'gpu_memcpy')
    GROUP BY ALL ORDER BY total_ms DESC, name LIMIT 8
"""


def list_case(suite: Suite, case: Case, truth: Truth | None) -> dict[str, Any]:
    """One line about a case; what the label says only if it is given."""
    info = case.info
    line = {
        "id": info.id,
        "workload": info.workload.name,
        "ranks": len(info.topology.ranks),
        "shape": info.shape,
        "question": info.question,
        "signals": list(info.signals.present),
        "digest": suite.info.cases[info.id].removeprefix("sha256:")[:DIGEST_SHOWN],
        "title": info.title,
    }
    if truth:
        line |= {
            "verdict": truth.verdict,
            "causes": [fault.cause for fault in truth.faults],
            "split": truth.split,
            "group": truth.group,
        }
    return line


def show_case(case: Case, truth: Truth | None) -> dict[str, Any]:
    """All that is public of a case, its rows and mean step times, and the label if given."""
    mine, reference = mean_step_ns(case), case.reference and mean_step_ns(case.reference)
    document: dict[str, Any] = {
        "case": case.info.model_dump(mode="json"),
        "rows": _rows(case),
        "reference_rows": _rows(case.reference) if case.reference else None,
        "mean_step_ms": mine and mine / 1e6,
        "reference_mean_step_ms": reference and reference / 1e6,
        "slowdown": slowdown(case),
        "top_events": case.sql(TOP_EVENTS).to_dict("records"),
    }
    if truth:
        document["label"] = truth.model_dump(mode="json", exclude_none=True)
    return document


def _rows(run: Recording) -> dict[str, int]:
    tables = {name: run.arrow(name).num_rows for name in TABLES if run.has(name)}
    traces = {f"traces.rank{rank}": len(run.trace(rank)) for rank in run.trace_ranks}
    return tables | traces
