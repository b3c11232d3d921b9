"""The floors: what costs no thought, answered in this process because it is our own code."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Sequence

from cases.bundle import Suite
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


def floor_responses(name: str, suite: Suite, prior: Prior) -> dict[str, Response]:
    """Answer every case of a suite as the floor `name` does in the sandbox."""
    bundled = DIAGNOSERS[name]
    diagnose = getattr(importlib.import_module(bundled.module), bundled.function)
    extra = {"settings": prior} if bundled.settings else {}
    return {
        case_id: Response(case_id, "ok", diagnose(suite.case(case_id), **extra), None)
        for case_id in suite.case_ids
    }


def score_floors(
    suite: Suite, labels: Sequence[Label], judged: Callable[[dict[str, Response]], Scores]
) -> dict[str, dict[str, float | None]]:
    """Return each floor's metrics: floor -> metric -> value.

    Args:
        judged: Scores responses as those of any diagnoser are scored.
    """
    prior = train_prior(labels, TABLE_SEED)
    scored = {name: judged(floor_responses(name, suite, prior)) for name in FLOORS}
    return {
        name: {metric.name: metric.value for metric in scores.metrics.values()}
        for name, scores in scored.items()
    }
