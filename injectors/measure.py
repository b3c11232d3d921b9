"""From the blocks of a session to labels: paired trials of each arm, and what they decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cases.truth import PairedTrials
from injectors.label_rule import Decision, decide
from injectors.scenario import HEALTHY, Scenario

BASELINE, NULL = "baseline", "null"


@dataclass(frozen=True)
class Measured:
    """Trials of one arm against the healthy job of the same session.

    Faults are decided by the first blocks and cost is estimated on the fresh ones. Nothing is
    selected among decoys and healthy runs, so all of their blocks decide.
    """

    acceptance: PairedTrials
    fresh: PairedTrials | None
    decision: Decision


def measured(scenario: Scenario, blocks: Sequence[dict[str, Any]], arm: str) -> Measured:
    """Pair an arm's trials with the baseline trials of the same blocks."""
    steps = scenario.trials.steps
    if arm in scenario.faults():
        first, last = scenario.trials.blocks, scenario.trials.blocks + scenario.trials.fresh
        acceptance = paired(blocks[:first], arm, steps)
        return Measured(acceptance, paired(blocks[first:last], arm, steps), decide(acceptance))
    acceptance = paired(blocks, NULL if arm == HEALTHY else arm, steps)
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
