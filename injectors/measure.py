"""From the blocks of a session to labels: paired trials of each arm, and what they decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cases.truth import PairedTrials
from injectors.label_rule import Decision, decide
from injectors.scenario import HEALTHY, Scenario

BASELINE = "baseline"


@dataclass(frozen=True)
class Measured:
    """Trials of one arm against the healthy job of the same session.

    Faults are decided by the first blocks and cost is estimated on the fresh ones. Nothing is
    selected among decoys and healthy runs, so all of their pairs decide.
    """

    acceptance: PairedTrials
    fresh: PairedTrials | None
    decision: Decision


def measured(scenario: Scenario, blocks: Sequence[dict[str, Any]], arm: str) -> Measured:
    """Pair an arm's trials with the baseline trials of the same blocks.

    The healthy job is paired with itself: the blocks' `null` pairs.
    """
    steps = scenario.trials.steps
    if arm in scenario.faults():
        first, last = scenario.trials.blocks, scenario.trials.blocks + scenario.trials.fresh
        acceptance = paired(blocks[:first], arm, steps)
        return Measured(acceptance, paired(blocks[first:last], arm, steps), decide(acceptance))
    acceptance = null(scenario, blocks) if arm == HEALTHY else paired(blocks, arm, steps)
    return Measured(acceptance, None, decide(acceptance))


def paired(blocks: Sequence[dict[str, Any]], arm: str, steps: int) -> PairedTrials:
    """Return the arm's trials beside the baseline's."""
    return PairedTrials(
        baseline_s=tuple(block["seconds"][BASELINE] for block in blocks),
        treated_s=tuple(block["seconds"][arm] for block in blocks),
        treated_first=tuple(
            block["order"].index(arm) < block["order"].index(BASELINE) for block in blocks
        ),
        steps_per_trial=steps,
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
