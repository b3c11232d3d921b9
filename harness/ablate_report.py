"""An ablation as text: the signals ranked, and for each cause what buys it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.ablate import Ablation, Bought
from harness.aligned import aligned
from harness.degrade.effects import EFFECTS
from scorers import Metric

HEADS = {
    "recall": "recall",
    "misled_avoided": "misled avoided",
    "net_benefit": "net benefit",
}
NOTES = (
    "with all: against an answer that always abstains. bought: what is lost when the signal alone"
    " is withheld. alone: what it gives when all others are withheld, against abstaining.",
    "In brackets: 95 % intervals over groups; [?] where there are fewer than 6. Recall is of cause"
    " and place, net benefit at w = 1 and reference prevalence.",
)


def as_text(ablation: Ablation) -> str:
    """Return the tables with a title and notes."""
    head = (
        f"What each signal buys {ablation.diagnoser} on {ablation.suite}: {ablation.cases} cases"
        f" in {ablation.groups} groups, ranked by {HEADS[ablation.ranked_by]}"
    )
    return "\n\n".join([head, _signals(ablation), _causes(ablation), *NOTES])


def cell(metric: Metric) -> str:
    """Write one difference.

    >>> cell(Metric("recall", 0.25, 0.1, 0.4, 9, 9)), cell(Metric("recall", -0.2, None, None, 9, 2))
    ('+0.25 [+0.10, +0.40]', '-0.20 [?]')
    """
    if metric.value is None:
        return "-"
    if metric.low is None or metric.high is None:
        return f"{metric.value:+.2f} [?]"
    return f"{metric.value:+.2f} [{metric.low:+.2f}, {metric.high:+.2f}]"


def _signals(ablation: Ablation) -> str:
    """Return what is bought, and below it what each signal gives alone."""
    whole = [("with all", ablation.cases, ablation.with_all)]
    bought = [(one.signal, one.cases, one.withheld) for one in ablation.signals]
    single = [(one.signal, one.cases, one.alone) for one in ablation.signals]
    return "\n\n".join([_table("bought by", [*whole, *bought]), _table("alone", single)])


def _table(head: str, rows: Sequence[tuple[str, int, Mapping[str, Metric]]]) -> str:
    cells = [
        [signal, cases, *(cell(effects[name]) for name in EFFECTS)]
        for signal, cases, effects in rows
    ]
    return aligned([head, "cases", *(HEADS[name] for name in EFFECTS)], cells)


def _causes(ablation: Ablation) -> str:
    rows = [
        (
            cause,
            count,
            f"{ablation.causes_with_all[cause].value or 0.0:.2f}",
            _buyers(ablation.signals, cause),
        )
        for cause, count in ablation.faults.items()
    ]
    return aligned(["cause", "faults", "recall", "of which lost without"], rows)


def _buyers(signals: tuple[Bought, ...], cause: str) -> str:
    """Name the signals that the recall of a cause hangs on, with how much of it."""
    values = {one.signal: one.causes[cause].value or 0.0 for one in signals}
    moving = [(signal, value) for signal, value in values.items() if round(value, 2)]
    ordered = sorted(moving, key=lambda pair: -abs(pair[1]))
    return ", ".join(f"{signal} {value:+.2f}" for signal, value in ordered)
