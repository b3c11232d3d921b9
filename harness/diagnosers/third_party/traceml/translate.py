"""What TraceML says, in the words of the taxonomy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.schema import Diagnosis, Locus
from harness.diagnosers.third_party.answers import GRADES, Said, answer

# By kind, from the texts of its rules (traceml_ai/diagnostics/step_time/rules.py, 0.5.0). None:
# what it names there lies in several domains, so that there is no name for it.
CAUSES: dict[str, str | None] = {
    "INPUT_BOUND": "input_pipeline",  # "Increase workers, prefetch, or storage throughput."
    "INPUT_STRAGGLER": "input_pipeline",  # the same on one rank: "waited {value} ms for input"
    "H2D_BOUND": "host_to_device_copy",  # "pinned memory, batch transfer"
    "H2D_STRAGGLER": "host_to_device_copy",
    # "work outside traced phases, CPU stalls, logging, checkpointing, validation"
    "RESIDUAL_HEAVY": None,
    "STRAGGLER": None,  # "cause not measured"
    "COMPUTE_STRAGGLER": None,  # "Inspect forward compute on" the rank
}
# "Report dominant compute as informational context"; "No dominant bottleneck is visible"
HEALTHY = {"COMPUTE_BOUND", "BALANCED"}
NOTHING = {"NO_DATA", "WARMUP", "INCOMPLETE_DATA"}


def translate(raw: Any) -> Diagnosis:
    """Translate its issues; a straggler sits at the rank that it calls the culprit."""
    kind = raw["primary"]["kind"]
    if kind in NOTHING:
        return answer([], judged=False)
    said = [one for issue in raw["issues"] if issue["kind"] not in HEALTHY for one in _said(issue)]
    return answer(said, judged=kind in HEALTHY or bool(said))


def _said(issue: dict[str, Any]) -> Iterator[Said]:
    cause, ranks = CAUSES[issue["kind"]], issue["ranks"]
    if cause is None:
        return
    placed = issue["kind"].endswith("STRAGGLER") and ranks
    locus = Locus(scope="rank", ranks=tuple(ranks)) if placed else None
    yield Said(cause, GRADES[issue["severity"]], locus=locus, lost_fraction=issue["share_pct"])
