"""TraceML: wall times of steps by rank, judged by its step-time rules for finished runs."""

from __future__ import annotations

from typing import Any

from cases.case import Case
from harness.diagnosers.third_party.adapter import Adapter
from harness.diagnosers.third_party.rows import rows
from harness.diagnosers.third_party.traceml.translate import CAUSES, translate

PHASES = {
    "input_wait": "data_wait_ns",
    "forward": "forward_ns",
    "backward": "backward_ns",
    "optimizer_step": "optimizer_ns",
}
SHARDED = "fsdp"  # its other strategy, of which it is more careful


def inputs(case: Case) -> dict[str, Any]:
    """Give its phases in ms by rank and step, on the CPU's clock, which is the job's own.

    Its `traced_step_time` is the step without the wait for input (`StepTimeValues`). Copies to
    the device are no phase of a recording, and a phase that was not timed is left out.
    """
    found = []
    known = ("rank", "step", "duration_ns")
    for row in rows(case.steps, (*known, *PHASES.values()), known):
        timed = {phase: row[name] for phase, name in PHASES.items() if row[name] is not None}
        if "input_wait" in timed:
            timed["traced_step_time"] = row["duration_ns"] - timed["input_wait"]
        ms = {phase: ns / 1e6 for phase, ns in timed.items()}
        found.append({"rank": row["rank"], "step": row["step"], "ms": ms})
    return {
        "rows": found,
        "ranks": len(case.info.topology.ranks),
        "strategy": SHARDED if SHARDED in case.info.workload.name else "ddp",
    }


diagnose = Adapter(
    "traceml",
    version=1,
    causes=tuple(cause for cause in CAUSES.values() if cause),
    translate=translate,
    needs={"signals": ["steps"], "kinds": ["training"]},
    inputs=inputs,
)
