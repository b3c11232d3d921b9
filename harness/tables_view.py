"""Scores as text: a row per diagnoser, the floors under them, intervals beside the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.aligned import aligned
from scorers.severity import BANDS

WRONG = {
    "misled": "misled_rate",
    "misattribution": "misattribution_rate",
    "false alarm": "false_alarm_rate",
    "overclaim": "overclaim_rate",
    "net benefit*": "net_benefit_w1_reference",
    "failed": "failed_rate",
}
RIGHT = {
    "recall cause": "recall_cause",
    "recall cause+place": "recall_cause_and_locus",
    "precision cause": "precision_cause",
    "precision cause+place": "precision_cause_and_locus",
    "top1": "top1",
}
SURE = {
    "Brier": "brier",
    "ECE": "ece",
    "ECE by chance": "ece_by_chance",
    "calibration slope": "calibration_slope",
    "AUGRC": "augrc",
    "evidence holds": "evidence_support",
}
COST = {
    "lost share: error": "lost_fraction_error",
    "by the median": "lost_fraction_error_floor",
    "on wrong causes": "misattributed_time",
    "minimum detectable": "minimum_detectable",
    "window overlap": "window_iou",
    "onset error": "onset_error",
}
SEVERITY = {f"found, {band}": f"recall_at_{band}" for band in BANDS}
SEVERITY_NOTE = "found: cause and place; lost share of time, " + ", ".join(
    f"{band} from {low:.0%}" if low else band for band, low in BANDS.items()
)
REFERENCE = "* at reference prevalence: 20 % faulty, 70 % healthy, 10 % undecidable"


def render(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Return tables for summaries of one suite.

    How often misled, how often right, how sure, of what cost, and which of it was found. A
    figure stands with its 95 % interval, `[?]` where there are too few groups for one, alone
    where it has none, and `-` where there is nothing to count.
    """
    first = summaries[0]
    mix = ", ".join(f"{number} {name}" for name, number in first["composition"].items())
    head = f"{first['suite']}: {first['cases']} cases ({mix}) in {first['groups']} groups"
    parts = [head, _table(summaries, WRONG, seconds=True), REFERENCE]
    parts.append(_table(summaries, RIGHT, seconds=False))
    for columns in (SURE, COST):
        defined = {name: metric for name, metric in columns.items() if _valued(summaries, metric)}
        parts += [_table(summaries, defined, seconds=False)] if defined else []
    if any(_known(summaries, metric) for metric in SEVERITY.values()):
        parts += [_table(summaries, SEVERITY, seconds=False), SEVERITY_NOTE]
    return "\n\n".join([*parts, *_notes(summaries)])


def cell(metric: Mapping[str, Any] | None) -> str:
    """Write one figure.

    >>> cell({"value": 0.25, "low": 0.1, "high": 0.4}), cell({"value": 0.25, "note": "few"})
    ('0.25 [0.10, 0.40]', '0.25 [?]')
    """
    if metric is None or metric["value"] is None:
        return "-"
    if metric.get("low") is None:
        return f"{metric['value']:.2f}" + (" [?]" if metric.get("note") else "")
    return f"{metric['value']:.2f} [{metric['low']:.2f}, {metric['high']:.2f}]"


def _table(
    summaries: Sequence[Mapping[str, Any]], columns: Mapping[str, str], seconds: bool
) -> str:
    names = {name: metric for name, metric in columns.items() if _known(summaries, metric)}
    rows = [
        [
            summary["diagnoser"],
            *(cell(summary["metrics"].get(metric)) for metric in names.values()),
            *([_seconds(summary)] if seconds else []),
        ]
        for summary in summaries
    ]
    for floor, values in summaries[0]["floors"].items():
        figures = (values.get(metric) for metric in names.values())
        shown = ("-" if value is None else f"{value:.2f}" for value in figures)
        rows.append([f"floor: {floor}", *shown, *([""] if seconds else [])])
    return aligned(["diagnoser", *names, *(["s/case"] if seconds else [])], rows)


def _known(summaries: Sequence[Mapping[str, Any]], metric: str) -> bool:
    return any(metric in summary["metrics"] for summary in summaries)


def _valued(summaries: Sequence[Mapping[str, Any]], metric: str) -> bool:
    return any((s["metrics"].get(metric) or {}).get("value") is not None for s in summaries)


def _seconds(summary: Mapping[str, Any]) -> str:
    value = summary["timing"]["seconds_median"]
    return "-" if value is None else f"{value:.3g}"


def _notes(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    notes = []
    for summary in summaries:
        isolation = summary["isolation"]
        if not isolation["sealed"]:
            reason = f" ({isolation['note']})" if isolation.get("note") else ""
            notes.append(f"{summary['diagnoser']}: unsealed, labels were within reach{reason}")
        if "repeats" in summary:
            rate, askings = summary["metrics"]["flip_rate"], summary["repeats"]["askings"]
            flipped = f"{len(summary['repeats']['flipped'])} cases flipped in {askings} askings"
            notes.append(f"{summary['diagnoser']}: flip rate {cell(rate)}, {flipped}")
        if not summary["ranked"]:
            notes.append(f"{summary['diagnoser']}: not ranked")
    return ["\n".join(notes)] if notes else []
