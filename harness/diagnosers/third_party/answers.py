"""From single statements of a tool to one answer: what all translators share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cases.schema import JOB, MAX_ROOTS, Diagnosis, Finding, Locus

# What a tool's own grade is worth as a probability, where it gives no number; for all tools alike.
GRADES = {
    **dict.fromkeys(("high", "crit", "critical"), 0.8),
    **dict.fromkeys(("med", "medium", "warn", "warning"), 0.5),
    **dict.fromkeys(("low", "info"), 0.3),
}
UNGRADED = 0.5  # of a tool that grades nothing


@dataclass(frozen=True)
class Said:
    """One statement of a tool.

    Attributes:
        cause: The name of the taxonomy that it is translated to.
        confidence: The tool's own from 0 to 1, or what its grade is worth (`GRADES`).
        rank: Of whose recording it was said; None where it was said of the job.
        locus: Where the tool itself says that the cause sits.
        lost_fraction: The share of wall time that the tool says is lost.
    """

    cause: str
    confidence: float
    rank: int | None = None
    locus: Locus | None = None
    lost_fraction: float | None = None


def answer(said: Iterable[Said], ranks: int = 1, judged: bool = True) -> Diagnosis:
    """Put statements together: one finding a cause and place, the surest first.

    A cause that a tool finds on every rank it looked at is the job's; one that it finds on some
    is placed there. The confidence is the largest that was given for it. More findings than an
    answer may hold are cut, the least sure ones.

    Args:
        said: What the tool says is wrong.
        ranks: How many ranks' recordings it judged.
        judged: False where it says that it cannot tell, or names nothing that it could name.

    >>> answer([Said("slow_link", 0.8, rank=1)], ranks=2).findings[0].locus.ranks
    (1,)
    >>> answer([]).verdict, answer([], judged=False).verdict
    ('healthy', 'abstain')
    """
    groups: dict[tuple[str, str], list[Said]] = {}
    for one in said:
        key = one.cause, one.locus.model_dump_json() if one.locus else ""
        groups.setdefault(key, []).append(one)
    findings = [_finding(group, ranks) for group in groups.values()]
    findings = sorted(findings, key=lambda finding: -finding.confidence)[:MAX_ROOTS]
    if findings:
        return Diagnosis(
            verdict="faulty", findings=tuple(findings), confidence=findings[0].confidence
        )
    return Diagnosis(verdict="healthy" if judged else "abstain")


def _finding(group: list[Said], ranks: int) -> Finding:
    surest = max(group, key=lambda one: one.confidence)
    lost = [one.lost_fraction for one in group if one.lost_fraction is not None]
    return Finding(
        cause=surest.cause,
        confidence=surest.confidence,
        locus=surest.locus or _where({one.rank for one in group}, ranks),
        lost_fraction=min(1.0, max(0.0, max(lost))) if lost else None,
    )


def _where(found_on: set[int | None], ranks: int) -> Locus:
    named = sorted(rank for rank in found_on if rank is not None)
    if None in found_on or len(named) >= ranks:
        return JOB
    return Locus(scope="rank", ranks=tuple(named))
