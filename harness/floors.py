"""The floors: what costs no thought, answered in this process because it is our own code."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from cases.bundle import Suite
from cases.case import Case
from cases.schema import Diagnosis
from harness.diagnosers import DIAGNOSERS, FLOORS
from harness.diagnosers.prior import Prior
from scorers import Label, Response, Scores

TABLE_SEED = 0


def train_prior(labels: Sequence[Label], seed: int) -> Prior:
    """Count causes and verdicts of the train split; of all cases where it is empty."""
    train = [label for label in labels if label.split == "train"] or list(labels)
    causes = Counter(fault.cause for label in train for fault in label.faults)
    verdicts = Counter(label.verdict for label in train)
    return Prior(
        causes=dict(sorted(causes.items(), key=lambda item: (-item[1], item[0]))),
        verdicts={name: verdicts[name] for name in ("healthy", "faulty", "undecidable")},
        seed=seed,
    )


def floor_responses(suite: Suite, prior: Prior) -> dict[str, dict[str, Response]]:
    """Answer every case of a suite as each floor does in the sandbox: floor -> case -> answer."""
    floors = {name: _diagnose(name, prior) for name in FLOORS}
    responses: dict[str, dict[str, Response]] = {name: {} for name in FLOORS}
    for case_id in suite.case_ids:
        case = suite.case(case_id)
        for name, diagnose in floors.items():
            responses[name][case_id] = Response(case_id, "ok", diagnose(case), None)
    return responses


def _diagnose(name: str, prior: Prior) -> Callable[[Case], Diagnosis]:
    bundled = DIAGNOSERS[name]
    diagnose: Any = getattr(importlib.import_module(bundled.module), bundled.function)
    return partial(diagnose, settings=prior) if bundled.settings else diagnose


def score_floors(
    suite: Suite, labels: Sequence[Label], judged: Callable[[dict[str, Response]], Scores]
) -> dict[str, dict[str, float | None]]:
    """Return each floor's metrics: floor -> metric -> value.

    Args:
        judged: Scores responses as those of any diagnoser are scored.
    """
    prior = train_prior(labels, TABLE_SEED)
    responses = floor_responses(suite, prior)
    scored = {name: judged(given) for name, given in responses.items()}
    return {
        name: {metric.name: metric.value for metric in scores.metrics.values()}
        for name, scores in scored.items()
    }
