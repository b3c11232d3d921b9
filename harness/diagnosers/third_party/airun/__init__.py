"""airun-profiler: the negative control, which returns the same evidence whatever it is given."""

from __future__ import annotations

from typing import Any

from cases.case import Case
from harness.diagnosers.third_party.adapter import Adapter
from harness.diagnosers.third_party.airun.translate import CAUSES, translate
from harness.diagnosers.third_party.rows import rows

MAX_SPANS = 2000


def inputs(case: Case) -> dict[str, Any]:
    """Give rank 0's steps, or the requests of a server, as the spans of its traces."""
    requests = rows(
        case.requests,
        ("arrival_ns", "finished_ns", "prompt_tokens", "generation_tokens"),
        ("arrival_ns", "finished_ns"),
    )
    llm = [
        {
            "kind": "llm",
            "start_ns": row["arrival_ns"],
            "duration_ns": row["finished_ns"] - row["arrival_ns"],
            "tokens_input": row["prompt_tokens"],
            "tokens_output": row["generation_tokens"],
        }
        for row in requests
    ]
    steps = case.steps[case.steps["rank"] == 0]
    custom = [
        {"kind": "custom", **row}
        for row in rows(steps, ("start_ns", "duration_ns"), ("start_ns", "duration_ns"))
    ]
    return {"spans": (llm or custom)[:MAX_SPANS]}


diagnose = Adapter(
    "airun",
    version=1,
    causes=tuple(cause for cause in CAUSES.values() if cause),
    translate=translate,
    needs={"signals": ["steps"], "kinds": ["training", "inference"]},
    inputs=inputs,
)
