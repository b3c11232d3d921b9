"""Fleets: which segment's jobs became slower than jobs alike elsewhere, and why.

Nothing is slower than jobs alike: healthy, however the averages moved. Otherwise each cause is
asked where what it lengthens grew, and whether its signs are there. See docs/rules.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cases.case import Case
from cases.schema import Diagnosis, Finding, Locus, RuledOut
from harness.diagnosers.rules.fleets.causes import CAUSES, FleetCause, State, facts_of
from harness.diagnosers.rules.fleets.jobs import Fleet
from harness.diagnosers.rules.fleets.queries import query_of, says
from harness.diagnosers.rules.fleets.search import FEWEST, Search, Segment
from harness.diagnosers.rules.queries import cited

AGREED = 0.02  # relative tolerance of a number that is cited: less than any loss that is blamed
SURE = 0.95  # no case of train or dev was answered wrongly; there may be causes that are not listed
LESS_SURE = 0.7
DECISIVE = ("jobs.duration_ns", "jobs.steps")  # without these nobody knows how long steps take


@dataclass(frozen=True)
class Suspect:
    """A cause, the segments that it may sit in, and whether it is shown there."""

    cause: FleetCause
    segments: list[Segment]
    facts: dict[str, float]
    state: State


def diagnose_fleet(case: Case) -> Diagnosis:
    """Answer about a fleet."""
    if case.reference is None:  # nothing says what jobs alike take
        return Diagnosis(verdict="abstain", confidence=0.9)
    search = Search(Fleet(case, case.reference))
    if search.comparable < FEWEST:
        return Diagnosis(verdict="abstain", confidence=0.9, missing_signals=DECISIVE)
    slow = search.slow
    if not slow:
        return Diagnosis(verdict="healthy", confidence=0.95)
    suspects = [s for cause in CAUSES if (s := suspect(search, cause, slow)) is not None]
    shown = [item for item in suspects if item.state == "shown"]
    open_ = [item for item in suspects if item.state == "open"]
    if shown or len(open_) == 1:
        return blame(search, case, (shown or open_)[0])
    missing = dict.fromkeys(f"jobs.{c}" for item in open_ for c in item.cause.unknown(item.facts))
    return Diagnosis(
        verdict="abstain",
        confidence=0.9 if open_ else 0.3,
        candidates=tuple(dict.fromkeys(item.cause.name for item in open_)),
        missing_signals=tuple(missing),
    )


def suspect(search: Search, cause: FleetCause, slow: list[Segment]) -> Suspect | None:
    """Where the cause would sit, None if nowhere."""
    name, sign = cause.grew.removeprefix("-"), -1.0 if cause.grew.startswith("-") else 1.0
    if np.isfinite(search.fleet.compared(name).now).any():
        found = search.best(name, cause.owners, sign)
    else:
        found = [segment for segment in slow if segment.columns in cause.owners]
    if not found:
        return None
    facts = facts_of(search, found[0])
    state = cause.state(facts)
    return None if state == "excluded" else Suspect(cause, found, facts, state)


def blame(search: Search, case: Case, found: Suspect) -> Diagnosis:
    """State the cause, its segment, what shows it, and what it is not."""
    segment = found.segments[0]
    alone = len(found.segments) == 1  # else columns that came together: the cause is known alone
    sure = SURE if found.state == "shown" and alone else LESS_SURE
    cites = ("slowdown", *found.cause.cites)
    queries = ((says(fact), query_of(fact, segment)) for fact in cites)
    finding = Finding(
        cause=found.cause.name,
        locus=Locus(scope="segment", segment=dict(segment.values)) if alone else None,
        confidence=sure,
        lost_fraction=1 - 1 / search.slowdown(segment),
        evidence=cited(case, queries, AGREED),
        ruled_out=tuple(RuledOut(cause=cause, why=why) for cause, why in found.cause.rivals),
    )
    return Diagnosis(verdict="faulty", findings=(finding,), confidence=sure)
