"""Checks that need the labels alone: decided again, costed again, consistent among themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cases.taxonomy import Taxonomy
from harness.checklist import Checklist
from harness.judge import Ablated, Counterfactual, PairedTrials, Stated, Truth
from injectors.joint import joint_problems
from injectors.label_rule import decide, lost_fraction, recompute, shows
from injectors.sim.counterfactual import problems as simulated_problems

COST_TOLERANCE = 1e-6


def check_label(
    checklist: Checklist, truth: Truth, truths: dict[str, Truth], taxonomy: Taxonomy
) -> None:
    """Check one label against its own samples, the taxonomy and the other labels."""
    decided = truth.validation.decision
    wrong = truth.verdict in ("faulty", "healthy") and decided != truth.verdict
    problems = [f"the verdict is {truth.verdict}, the samples decided {decided}"] if wrong else []
    if isinstance(truth.validation, Stated):
        stated = f"it is stated ({truth.validation.source}) and was not measured"
        checklist.add("label_rule", truth.id, [*problems, stated])
    elif isinstance(truth.validation, Counterfactual):
        problems += simulated_problems(truth.validation, truth.faults)
        if not shows(decided, truth.validation.shipped_ratio):
            problems.append(f"the shipped run shows {truth.validation.shipped_ratio:.3f}")
        checklist.add("label_rule", truth.id, problems)
    else:
        checklist.add("label_rule", truth.id, problems + recompute(truth.validation))
        _check_measured(checklist, truth)
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


def _check_measured(checklist: Checklist, truth: Truth) -> None:
    """Check what only a label of measured trials has."""
    validation = truth.validation
    assert not isinstance(validation, Counterfactual | Stated)
    checklist.add("cost", truth.id, _cost_problems(truth, validation.fresh))
    if validation.alone or len(truth.faults) > 1:
        checklist.add("joint", truth.id, joint_problems(validation, truth.faults))
    if validation.ablations:
        checklist.add("headroom", truth.id, _headroom_problems(validation.ablations))


def _cost_problems(truth: Truth, fresh: PairedTrials | None) -> Iterator[str]:
    if len(truth.faults) == 1 and fresh:
        found, stated = lost_fraction(fresh), truth.faults[0].lost_fraction
        again, before = ((cost.value, cost.low, cost.high) for cost in (found, stated))
        if not np.allclose(again, before, rtol=COST_TOLERANCE):
            yield f"the fresh samples give {found}, the label states {stated}"


def _headroom_problems(ablations: Sequence[Ablated]) -> Iterator[str]:
    for tried in ablations:
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
