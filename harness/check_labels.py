"""Checks that need the labels alone: decided again, costed again, consistent among themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases.taxonomy import Taxonomy
from harness.checklist import Checklist
from harness.judge import Truth
from injectors.joint import joint_problems
from injectors.label_rule import decide, lost_fraction, recompute

COST_TOLERANCE = 1e-6


def check_label(
    checklist: Checklist, truth: Truth, truths: dict[str, Truth], taxonomy: Taxonomy
) -> None:
    """Check one label against its own samples, the taxonomy and the other labels."""
    decided = truth.validation.decision
    wrong = truth.verdict in ("faulty", "healthy") and decided != truth.verdict
    problems = [f"the verdict is {truth.verdict}, the samples decided {decided}"] if wrong else []
    checklist.add("label_rule", truth.id, problems + recompute(truth.validation))
    checklist.add("cost", truth.id, _cost_problems(truth))
    if truth.validation.alone or len(truth.faults) > 1:
        checklist.add("joint", truth.id, joint_problems(truth.validation, truth.faults))
    if truth.validation.ablations:
        checklist.add("headroom", truth.id, _headroom_problems(truth))
    names = {
        name for fault in truth.faults for name in (fault.cause, *fault.acceptable, *fault.symptoms)
    }
    names |= {name for decoy in truth.decoys for name in decoy.looks_like} | {*truth.candidates}
    unknown = sorted(names - set(taxonomy.causes))
    checklist.add("taxonomy", truth.id, [f"{name} is no cause" for name in unknown])
    checklist.add("twin", truth.id, _twin_problems(truth, truths))
    if truth.witness:
        strangers = sorted(set(truth.witness.false_on) - set(truths))
        missing = truth.twin not in truth.witness.false_on
        problems = [f"false_on names no case of the suite: {name}" for name in strangers]
        problems += ["false_on must name the healthy twin"] if missing else []
        checklist.add("witness_false", truth.id, problems)


def _cost_problems(truth: Truth) -> Iterator[str]:
    fresh = truth.validation.fresh
    if len(truth.faults) == 1 and fresh:
        found, stated = lost_fraction(fresh), truth.faults[0].lost_fraction
        again, before = ((cost.value, cost.low, cost.high) for cost in (found, stated))
        if not np.allclose(again, before, rtol=COST_TOLERANCE):
            yield f"the fresh samples give {found}, the label states {stated}"


def _headroom_problems(truth: Truth) -> Iterator[str]:
    for tried in truth.validation.ablations:
        decision = decide(tried.trials)
        if decision.verdict != "healthy":
            yield f"the job may be faster without what {tried.cause} costs: {decision}"


def _twin_problems(truth: Truth, truths: dict[str, Truth]) -> Iterator[str]:
    if truth.twin is None:
        if truth.verdict == "faulty":
            yield "a faulty case must name its healthy twin"
        return
    twin = truths.get(truth.twin)
    if twin is None or twin.verdict != "healthy":
        yield f"{truth.twin} is no healthy case of the suite"
    elif twin.group != truth.group:
        yield f"{truth.twin} lies in group {twin.group}, not in {truth.group}"
