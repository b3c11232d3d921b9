"""From the blocks of a session to labels: paired trials of each arm, and what they decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cases.truth import Ablated, Alone, PairedTrials
from injectors.label_rule import Decision, decide
from injectors.scenario import HEALTHY, Scenario

BASELINE = "baseline"


@dataclass(frozen=True)
class Measured:
    """Trials of one arm against the healthy job of the same session.

    Faults are decided by the first blocks and cost is estimated on the fresh ones. Nothing is
    selected among decoys and healthy runs, so all of their pairs decide. `alone` has the trials
    of each fault by itself where an arm has two.
    """

    acceptance: PairedTrials
    fresh: PairedTrials | None
    decision: Decision
    alone: tuple[Alone, ...] = ()


def measured(scenario: Scenario, blocks: Sequence[dict[str, Any]], arm: str) -> Measured:
    """Pair an arm's trials with the baseline trials of the same blocks.

    The healthy job is paired with itself: the blocks' `null` pairs.
    """
    steps = scenario.trials.steps
    if arm in scenario.faulty():
        first, last = scenario.trials.blocks, scenario.trials.blocks + scenario.trials.fresh
        deciding, costing = blocks[:first], blocks[first:last]
        acceptance = paired(deciding, arm, steps)
        alone = tuple(
            Alone(
                cause=scenario.faults()[member].cause,
                acceptance_s=seconds(deciding, member),
                fresh_s=seconds(costing, member),
            )
            for member in scenario.arms[arm].both or ()
        )
        return Measured(acceptance, paired(costing, arm, steps), decide(acceptance), alone)
    acceptance = null(scenario, blocks) if arm == HEALTHY else paired(blocks, arm, steps)
    return Measured(acceptance, None, decide(acceptance))


def paired(blocks: Sequence[dict[str, Any]], arm: str, steps: int) -> PairedTrials:
    """Return the arm's trials beside the baseline's."""
    return PairedTrials(
        baseline_s=seconds(blocks, BASELINE),
        treated_s=seconds(blocks, arm),
        treated_first=tuple(
            block["order"].index(arm) < block["order"].index(BASELINE) for block in blocks
        ),
        steps_per_trial=steps,
    )


def seconds(blocks: Sequence[dict[str, Any]], arm: str) -> tuple[float, ...]:
    """Return an arm's mean step seconds in each block."""
    return tuple(block["seconds"][arm] for block in blocks)


def ablated(scenario: Scenario, blocks: Sequence[dict[str, Any]]) -> tuple[Ablated, ...]:
    """Return what each ablation found: the plain job as treated, the job without it as baseline."""
    steps = scenario.trials.steps
    return tuple(
        Ablated(cause=ablation.cause, trials=swapped(paired(blocks, name, steps)))
        for name, ablation in scenario.ablations().items()
    )


def swapped(trials: PairedTrials) -> PairedTrials:
    """Exchange the two sides of every pair."""
    return PairedTrials(
        baseline_s=trials.treated_s,
        treated_s=trials.baseline_s,
        treated_first=tuple(not first for first in trials.treated_first),
        steps_per_trial=trials.steps_per_trial,
    )


def null(scenario: Scenario, blocks: Sequence[dict[str, Any]]) -> PairedTrials:
    """Return the healthy job's trials beside its own."""
    pairs = [pair for block in blocks for pair in block["null"]]
    return PairedTrials(
        baseline_s=tuple(pair["baseline"] for pair in pairs),
        treated_s=tuple(pair["null"] for pair in pairs),
        treated_first=tuple(next(iter(pair)) == "null" for pair in pairs),
        steps_per_trial=scenario.trials.null_steps,
    )
