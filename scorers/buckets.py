"""The one word for each case: what came of it, by what was true of it."""

from __future__ import annotations

from cases.schema import Diagnosis
from scorers.inputs import Label, Response
from scorers.settling import Judgement

UNANSWERED = ("failed", "unsupported", "abstained")
CASE_BUCKETS: dict[str, tuple[str, ...]] = {
    "faulty": (*UNANSWERED, "misled", "found", "partial", "missed"),
    "healthy": (*UNANSWERED, "quiet", "false_alarm"),
    "undecidable": (
        "failed",
        "unsupported",
        "abstained_informed",
        "abstained_blank",
        "overclaimed",
        "dismissed",
    ),
}


def case_bucket(label: Label, response: Response, judgement: Judgement) -> str:
    """Return the one bucket of CASE_BUCKETS that a case is in."""
    unanswered = unanswered_bucket(response)
    if label.verdict == "undecidable":
        if unanswered == "abstained" and response.diagnosis:
            informed = is_informed(response.diagnosis, label)
            return "abstained_informed" if informed else "abstained_blank"
        return unanswered or ("overclaimed" if response.findings else "dismissed")
    if unanswered:
        return unanswered
    if label.verdict == "healthy":
        return "false_alarm" if response.findings else "quiet"
    if judgement.misled:
        return "misled"
    if set(judgement.buckets) == {"found"}:
        return "found"
    return "missed" if set(judgement.buckets) == {"missed"} else "partial"


def unanswered_bucket(response: Response) -> str | None:
    """Return the bucket of a response that says nothing, None if it does say something."""
    if response.diagnosis is None:
        return "unsupported" if response.outcome == "unsupported" else "failed"
    return "abstained" if response.diagnosis.verdict == "abstain" else None


def is_informed(diagnosis: Diagnosis, label: Label) -> bool:
    """Decide whether an abstention says why: names the missing signals or the candidates.

    Either list is right at a Jaccard index of at least 0.5; of signals the tables count
    (`gpu.power_w` is of table `gpu`), so listing every signal there is does not help.
    """
    named = {signal.partition(".")[0] for signal in diagnosis.missing_signals}
    missing = {signal.partition(".")[0] for signal in label.missing_signals}
    return _alike(named, missing) or _alike(set(diagnosis.candidates), set(label.candidates))


def _alike(found: set[str], true: set[str]) -> bool:
    return bool(true) and 2 * len(found & true) >= len(found | true)
