"""A decision list that walks the step as an engineer would: the model solution.

Is the job slower than its reference run? Is what decides recorded? Where does the time go, who
keeps the others waiting, and why: the first rule whose facts hold is the answer. Its facts are
numbers by documented formulas (`harness.diagnosers.features`), cited as SQL. See docs/rules.md.
"""

from __future__ import annotations

import math

from cases.case import Case
from cases.schema import Diagnosis, Evidence, Finding, RuledOut
from harness.diagnosers.features.facts import Facts
from harness.diagnosers.rules.fleets import diagnose_fleet
from harness.diagnosers.rules.missing import candidates, missing_signals
from harness.diagnosers.rules.order import rules_for
from harness.diagnosers.rules.place import place
from harness.diagnosers.rules.queries import SLOWDOWN, cited, query_of
from harness.diagnosers.rules.rule import Rule

SLOWER = 1.04  # on machines of one's own
SLOWER_SHARED = 1.06  # on shared CPU cores a recording alone varies by more
AGREED = 0.05  # relative tolerance of a number that is cited
DECISIVE = ("steps.duration_ns",)  # without it nobody knows whether the job is slower


def diagnose(case: Case) -> Diagnosis:
    """Answer by the first rule that holds."""
    if case.info.kind == "fleet":
        return diagnose_fleet(case)
    facts = Facts(case)
    if case.reference is not None and math.isnan(facts["slowdown"]):
        return Diagnosis(verdict="abstain", confidence=0.9, missing_signals=DECISIVE)
    if case.reference is not None and facts["slowdown"] <= slower_than(facts):
        return Diagnosis(verdict="healthy", confidence=0.95)
    missing = missing_signals(case)
    if missing:
        return Diagnosis(
            verdict="abstain",
            confidence=0.9,
            missing_signals=missing,
            candidates=candidates(missing),
        )
    for rule in rules_for(case):
        if rule.when(facts):
            finding = blame(facts, rule)
            return Diagnosis(verdict="faulty", findings=(finding,), confidence=rule.sure)
    if case.reference is None:
        return Diagnosis(verdict="healthy", confidence=0.6)
    return Diagnosis(verdict="abstain", confidence=0.3)


def slower_than(facts: Facts) -> float:
    """The slow-down below which a recording is taken for noise."""
    return SLOWER if facts["on_gpu"] else SLOWER_SHARED


def blame(facts: Facts, rule: Rule) -> Finding:
    """State the cause, its place, what shows it, and what it is not."""
    slowdown = facts["slowdown"]
    return Finding(
        cause=rule.cause,
        locus=place(facts, rule),
        confidence=rule.sure,
        lost_fraction=1 - 1 / slowdown if slowdown > 1 else None,
        evidence=cite(facts, rule),
        ruled_out=tuple(RuledOut(cause=cause, why=why) for cause, why in rule.rivals),
    )


def cite(facts: Facts, rule: Rule) -> tuple[Evidence, ...]:
    """A rule's facts as queries, each with the number that it gives here."""
    compared = facts.case.reference is not None
    found = [(fact, query_of(fact, compared)) for fact in rule.cites]
    queries = [(fact, sql) for fact, sql in found if sql]
    if compared:
        queries.append(("slowdown", SLOWDOWN))
    return cited(facts.case, ((fact, " ".join(sql.split())) for fact, sql in queries), AGREED)
