"""Stress as text: a table for each degradation, from the recordings to the severest grade."""

from __future__ import annotations

from dataclasses import replace

from harness.ablate_report import cell as change
from harness.aligned import aligned
from harness.stress import Grade, Strained, Stress
from scorers import Metric

NOTES = (
    "Each table is over the cases that the degradation can do anything to. Recall is of cause and"
    " place. change: against the same cases as recorded, paired; lost: cases that were answered"
    " rightly as recorded and no longer are, and what became of them.",
    "turns to: misleading or silence, if the 95 % interval of the share of lost cases that are"
    " misled lies above or below one half. [?]: fewer than 6 groups, so no interval.",
)
HEAD = ("level", "recall", "change", "misled", "change", "abstained", "failed", "lost", "turns to")


def as_text(stress: Stress) -> str:
    """Return the tables with a title and notes."""
    head = (
        f"{stress.diagnoser} on {stress.suite} as recordings get worse: {stress.cases} cases in"
        f" {stress.groups} groups, seed {stress.seed}"
    )
    return "\n\n".join([head, *(_table(one) for one in stress.degradations), *NOTES])


def _table(strained: Strained) -> str:
    head = f"{strained.name}: {strained.about} ({strained.cases} cases, {strained.groups} groups)"
    if not strained.cases:
        return head
    return "\n".join([head, aligned(HEAD, [_row(grade) for grade in strained.grades])])


def _row(grade: Grade) -> list[str]:
    rates, moved = grade.rates, grade.change
    silent = [_plain(rates[name]) for name in ("abstained", "failed")]
    if not moved:
        return [grade.shown, rate(rates["recall"]), "", rate(rates["misled"]), "", *silent, "", ""]
    return [
        grade.shown,
        rate(rates["recall"]),
        change(moved["recall"]),
        rate(rates["misled"]),
        _opposite(moved["misled_avoided"]),
        *silent,
        _lost(grade.lost),
        grade.turns,
    ]


def rate(metric: Metric) -> str:
    """Write one rate.

    >>> rate(Metric("misled", 0.25, 0.1, 0.4, 9, 9))
    '0.25 [0.10, 0.40]'
    """
    if metric.value is None:
        return "-"
    if metric.low is None or metric.high is None:
        return f"{metric.value:.2f} [?]"
    return f"{metric.value:.2f} [{metric.low:.2f}, {metric.high:.2f}]"


def _plain(metric: Metric) -> str:
    return "-" if metric.value is None else f"{metric.value:.2f}"


def _opposite(metric: Metric) -> str:
    """Write misled cases gained, not avoided."""
    value, low, high = (
        None if end is None else -end + 0.0 for end in (metric.value, metric.high, metric.low)
    )
    return change(replace(metric, value=value, low=low, high=high))


def _lost(lost: dict[str, int]) -> str:
    total = sum(lost.values())
    parts = [f"{count} {name}" for name, count in lost.items() if count]
    return f"{total} ({', '.join(parts)})" if total else "0"
