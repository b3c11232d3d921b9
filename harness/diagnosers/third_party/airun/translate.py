"""What `airun diagnose` says, in the words of the taxonomy."""

from __future__ import annotations

from typing import Any

from cases.schema import Diagnosis
from harness.diagnosers.third_party.answers import GRADES, Said, answer

# Its root causes (airun/analysis/diagnose.py, 0.1.7).
CAUSES: dict[str, str | None] = {
    "DataLoader starvation": "input_pipeline",
    "Context inflation & unshared prefix KV misses": "kv_cache",
    "Retry amplification & tool cascading stall": None,  # of agents, which no case has
}


def translate(raw: Any) -> Diagnosis:
    """Translate its root cause; it states one without any doubt, so it counts as sure."""
    cause = CAUSES[raw["root_cause"]]
    lost = raw["financial_impact"]["waste_percentage"] / 100
    said = [Said(cause, GRADES["high"], lost_fraction=lost)] if cause else []
    return answer(said, judged=bool(said))
