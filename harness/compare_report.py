"""A comparison of two diagnosers as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from textwrap import fill
from typing import Any

import pandas as pd

from harness.aligned import aligned
from harness.comparing import Compared, Side
from scorers import SCORING_VERSION, Comparison

METRIC = "net_benefit_w1_reference"
SHOWN_CAUSES = 15
SHOWN_CASES = 20
WIDTH = 96


def as_json(compared: Compared) -> dict[str, Any]:
    """Return the whole comparison as a versioned JSON document."""
    outcome, info = compared.outcome, compared.labelled.suite.info
    plain = {
        name: value
        for name, value in vars(outcome).items()
        if not isinstance(value, pd.DataFrame | list)
    }
    flipped = _with_truth(outcome.flipped, compared.a)
    return {
        "format": "evalharness.comparison/1.0",
        "suite": info.name,
        "suite_digest": info.digest,
        "scoring_version": SCORING_VERSION,
        "a": _about(compared.a),
        "b": _about(compared.b),
        "metric": METRIC,
        **plain,
        "secondary": [asdict(row) for row in outcome.secondary],
        "causes": outcome.causes.to_dict(orient="records"),
        "flipped": flipped.to_dict(orient="records"),
    }


def _about(side: Side) -> dict[str, Any]:
    return {"diagnoser": side.diagnoser, "results": side.place, "sealed": side.sealed}


def as_text(compared: Compared, *, everything: bool = False) -> str:
    """Return the verdict, then the tables that bear it out.

    Args:
        compared: The comparison.
        everything: Whether to show all causes and flipped cases.
    """
    outcome, cases = compared.outcome, compared.a.scores.cases
    info = compared.labelled.suite.info
    head = f"{info.name}: {len(cases)} cases in {outcome.groups} groups, judged anew"
    sides = [(name, side.diagnoser, side.place) for name, side in _sides(compared)]
    parts = [head, aligned(["", "diagnoser", "results"], sides)]
    parts.append(fill(verdict(compared), WIDTH))
    parts.append(fill(power(outcome), WIDTH))
    parts.append(_secondary(outcome))
    parts += _causes(outcome, None if everything else SHOWN_CAUSES)
    parts += _flipped(compared, None if everything else SHOWN_CASES)
    return "\n\n".join([*parts, *_notes(compared)])


def verdict(compared: Compared) -> str:
    """Say in a sentence which is better, or that it cannot be told."""
    a, b, outcome = compared.a.diagnoser, compared.b.diagnoser, compared.outcome
    said = {
        "better": f"better: A ({a}) is worth more than B ({b}).",
        "worse": f"worse: A ({a}) is worth less than B ({b}).",
        "equivalent": f"tied: A ({a}) and B ({b}) differ by less than {outcome.margin:g}.",
        "inconclusive": f"inconclusive: A ({a}) and B ({b}) cannot be told apart.",
    }
    interval = (
        "no interval"
        if outcome.low is None or outcome.high is None
        else f"90 % interval {outcome.low:+.3f} to {outcome.high:+.3f}"
    )
    tested = "" if outcome.p_value is None else f", p = {outcome.p_value:.2g}"
    figure = "Net benefit (w = 1, reference prevalence) A - B"
    note = f" ({outcome.note})" if outcome.note else ""
    return f"{said[outcome.verdict]} {figure}: {outcome.difference:+.3f}, {interval}{tested}{note}."


def power(outcome: Comparison) -> str:
    """Say how much the suite can show, and how many groups the difference seen would take."""
    seen = f"{outcome.groups_with_difference} of {outcome.groups} groups differ."
    if outcome.groups_needed is not None:
        seen += (
            f" A difference like this one shows four times of five in"
            f" {outcome.groups_needed} groups."
        )
    if outcome.visible_difference:
        seen += (
            f" The {outcome.groups} groups at hand show as often one of"
            f" {outcome.visible_difference:.3f}."
        )
    return seen


def _secondary(outcome: Comparison) -> str:
    rows = [
        [
            row.name,
            f"{row.first:.2f}",
            f"{row.second:.2f}",
            f"{row.difference:+.2f}"
            + ("" if row.low is None else f" [{row.low:+.2f}, {row.high:+.2f}]"),
            "-" if row.p_adjusted is None else f"{row.p_adjusted:.2g}",
            row.verdict if row.verdict != "inconclusive" else "",
        ]
        for row in outcome.secondary
    ]
    head = ["metric", "A", "B", "A - B", "p (Holm)", "A is"]
    return aligned(head, rows)


def _causes(outcome: Comparison, limit: int | None) -> list[str]:
    table = outcome.causes
    if table.empty:
        return []
    differs = (table["found_a"] != table["found_b"]) | (table["falsely_a"] != table["falsely_b"])
    rows = table.loc[differs]
    if rows.empty:
        return ["No cause is found or blamed more often by one than by the other."]
    head = ["cause", "faults", "groups", "found A", "B", "falsely blamed A", "B"]
    title = "Causes that differ (described, not tested)" + _cut(len(rows), limit)
    return [f"{title}\n" + aligned(head, rows.head(limit or len(rows)).to_numpy().tolist())]


def _flipped(compared: Compared, limit: int | None) -> list[str]:
    table = _with_truth(compared.outcome.flipped, compared.a)
    if table.empty:
        return ["No case ended otherwise."]
    rows = [
        [row.case_id, row.group, row.true, _answer(row, "a"), _answer(row, "b")]
        for row in table.head(limit or len(table)).itertuples()
    ]
    title = f"{len(table)} cases ended otherwise" + _cut(len(table), limit)
    return [f"{title}\n" + aligned(["case", "group", "true", "A", "B"], rows)]


def _answer(row: Any, side: str) -> str:
    bucket, blamed = getattr(row, f"bucket_{side}"), getattr(row, f"blamed_{side}")
    return f"{bucket} ({blamed})" if blamed else str(bucket)


def _with_truth(flipped: pd.DataFrame, side: Side) -> pd.DataFrame:
    """Add what is true of each case: its causes, else its verdict."""
    causes = side.scores.faults.groupby("case_id")["cause"].agg(", ".join).to_dict()
    true = [
        causes.get(case_id, verdict)
        for case_id, verdict in zip(flipped["case_id"], flipped["verdict"], strict=True)
    ]
    return flipped.assign(true=true)


def _cut(count: int, limit: int | None) -> str:
    return "" if limit is None or count <= limit else f", the first {limit} (--all shows them)"


def _sides(compared: Compared) -> list[tuple[str, Side]]:
    return [("A", compared.a), ("B", compared.b)]


def _notes(compared: Compared) -> list[str]:
    reasons = {False: "unsealed, labels were within reach", None: "how it ran is not known"}
    notes = [
        f"{name} ({side.diagnoser}): {reasons[side.sealed]}"
        for name, side in _sides(compared)
        if side.sealed is not True
    ]
    return ["\n".join(notes)] if notes else []
