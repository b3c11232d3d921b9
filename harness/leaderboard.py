"""Ranking tracked runs: only what was asked the same and judged the same shares a ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.stored import Metric
from harness.tracked import TrackedRun

RANKED_BY = "net_benefit_w1_reference"
# For suites that lack healthy or undecidable cases, where the reference mix has no meaning.
OWN_MIX = "net_benefit_w1"
# column title -> metric; the first is the headline, though silence would win by it
COLUMNS = {
    "misled": "misled_rate",
    "net benefit": RANKED_BY,
    "net benefit, own mix": OWN_MIX,
    "recall, cause and place": "recall_cause_and_locus",
    "recall, cause": "recall_cause",
    "precision, cause": "precision_cause",
    "false alarms": "false_alarm_rate",
}
MIX = {
    RANKED_BY: "at reference prevalence (20 % faulty, 70 % healthy, 10 % undecidable)",
    OWN_MIX: "over the suite's own mix of cases, which lacks one that the reference mix needs",
}


@dataclass(frozen=True)
class Row:
    """A diagnoser's latest run; `rank` None where it is not ranked, and `why` not."""

    run: TrackedRun
    rank: int | None = None
    tied: bool = False
    why: str = ""

    def metric(self, title: str) -> Metric:
        """Return the metric under a column title."""
        return self.run.metric(COLUMNS[title])


@dataclass(frozen=True)
class Board:
    """One ranking; `apart` holds what may not share it, `floors` what costs no thought."""

    suite: str
    suite_digest: str
    scoring_version: str
    labels: str
    rows: tuple[Row, ...]
    apart: tuple[Row, ...]
    floors: dict[str, dict[str, float]]
    ranked_by: str = RANKED_BY

    @property
    def notes(self) -> tuple[str, ...]:
        """Say how it is ranked and why not by the headline, and what tied means."""
        return (
            f"Ranked by net benefit {MIX[self.ranked_by]}: a false finding costs what a right"
            " one gains, and silence scores 0. Not by the share of misled cases, for a"
            " diagnoser that says nothing is never misled.",
            "In brackets: 95 % intervals. Tied: the interval holds the leader's value, or there"
            " is none.",
        )


def boards(suite: str, runs: Sequence[TrackedRun]) -> list[Board]:
    """Return a ranking per suite digest and scoring version, the latest first.

    Args:
        suite: The suite that all runs are of.
        runs: Complete runs, latest first.
    """
    found: dict[tuple[str, str], list[TrackedRun]] = {}
    for run in runs:
        key = (run.tags["suite_digest"], run.tags["scoring_version"])
        found.setdefault(key, []).append(run)
    return [_board(suite, group) for group in found.values()]


def _board(suite: str, runs: Sequence[TrackedRun]) -> Board:
    tags, by = runs[0].tags, ranking_metric(runs)
    return Board(
        suite=suite,
        suite_digest=tags["suite_digest"],
        scoring_version=tags["scoring_version"],
        labels=tags["labels"],
        rows=rank(latest([run for run in runs if not why_apart(run)]), by),
        apart=tuple(
            Row(run, why=why_apart(run))
            for run in in_order(latest([run for run in runs if why_apart(run)]), by)
        ),
        floors=floors(runs[0]),
        ranked_by=by,
    )


def ranking_metric(runs: Sequence[TrackedRun]) -> str:
    """Return the metric to rank by: at reference prevalence if any run has that."""
    known = any(run.metric(RANKED_BY).value is not None for run in runs)
    return RANKED_BY if known else OWN_MIX


def why_apart(run: TrackedRun) -> str:
    """Say why a run may not be ranked; empty if it may."""
    reasons = {
        "unsealed": not run.sealed,
        "unranked": not run.ranked,
        "supports no case": run.metrics.get("unsupported_rate", 0.0) >= 1.0,
    }
    return ", ".join(name for name, holds in reasons.items() if holds)


def latest(runs: Sequence[TrackedRun]) -> list[TrackedRun]:
    """Return each diagnoser's first run; `runs` come latest first."""
    return list({run.diagnoser: run for run in reversed(runs)}.values())


def in_order(runs: Sequence[TrackedRun], by: str = RANKED_BY) -> list[TrackedRun]:
    """Sort by net benefit, then fewer misled, then name; what has no score comes last."""

    def place(run: TrackedRun) -> tuple[float, float, str]:
        benefit, misled = run.metric(by).value, run.metric("misled_rate").value
        return (
            float("inf") if benefit is None else -benefit,
            float("inf") if misled is None else misled,
            run.diagnoser,
        )

    return sorted(runs, key=place)


def rank(runs: Sequence[TrackedRun], by: str = RANKED_BY) -> tuple[Row, ...]:
    """Number the runs from 1 and mark those that cannot be told from the first."""
    ordered = in_order(runs, by)
    best = ordered[0].metric(by).value if ordered else None
    return tuple(
        Row(run, why="not scored")
        if run.metric(by).value is None or best is None
        else Row(run, number, tied=number > 1 and holds(run.metric(by), best))
        for number, run in enumerate(ordered, start=1)
    )


def holds(metric: Metric, value: float) -> bool:
    """Say whether an interval holds `value`; one that is absent rules nothing out.

    >>> holds(Metric(value=0.2, low=0.1, high=0.3), 0.3), holds(Metric(value=0.2), 9.0)
    (True, True)
    """
    if metric.low is None or metric.high is None:
        return True
    return metric.low <= value <= metric.high


def floors(run: TrackedRun) -> dict[str, dict[str, float]]:
    """Return the floors that a run was scored beside: diagnoser -> metric -> value."""
    found: dict[str, dict[str, float]] = {}
    for name, value in sorted(run.metrics.items()):
        kind, _, rest = name.partition("/")
        if kind == "floor":
            floor, _, metric = rest.partition("/")
            found.setdefault(floor, {})[metric] = value
    return found
