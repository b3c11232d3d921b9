"""pytscope: per-step phases and one rank's trace, judged by its diagnosis rules.

It is given what its own recorder would have written, from the job's own timing of its steps, and
the trace of the lowest rank that has one: `pytscope analyze` reads one.
"""

from __future__ import annotations

from typing import Any

from cases.case import Case
from harness.diagnosers.third_party.adapter import Adapter, traces_of
from harness.diagnosers.third_party.pytscope.translate import CAUSES, translate
from harness.diagnosers.third_party.rows import rows

PHASES = {
    "data": "data_wait_ns",
    "forward": "forward_ns",
    "backward": "backward_ns",
    "optimizer": "optimizer_ns",
}


def inputs(case: Case) -> dict[str, Any]:
    """Give phases in seconds by rank and step; what no phase holds is its phase `other`.

    A phase that the job did not time is left out, as its recorder leaves it out.
    """
    steps: dict[str, list[dict[str, Any]]] = {}
    known = ("rank", "step", "duration_ns")
    for row in rows(case.steps, (*known, *PHASES.values()), known):
        timed = {phase: row[name] for phase, name in PHASES.items() if row[name] is not None}
        other_ns = row["duration_ns"] - sum(timed.values())
        phases = {phase: ns / 1e9 for phase, ns in timed.items()} | {
            "other": max(0, other_ns) / 1e9
        }
        record = {"step": row["step"], "phases": phases}
        steps.setdefault(str(row["rank"]), []).append(record)
    return {"steps": steps, **traces_of(case)}


diagnose = Adapter(
    "pytscope",
    version=1,
    causes=tuple(cause for cause in CAUSES.values() if cause),
    translate=translate,
    needs={"kinds": ["training"]},
    inputs=inputs,
)
