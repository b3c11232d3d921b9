"""A paired comparison of two diagnosers on the same labelled cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from cases.errors import InputError
from scorers.differing_cases import ANSWER, COLUMN, causes, flipped
from scorers.flips import differing, sign_flip_p
from scorers.intervals import MIN_GROUPS, Array, Bounds
from scorers.metric import PREVALENCE
from scorers.power import groups_needed, visible_difference
from scorers.scores import Scores
from scorers.secondary import SIGNIFICANCE, Difference, differences
from scorers.sums import Statistic, statistic_bounds
from scorers.tables import Tables

Ruling = Literal["better", "worse", "equivalent", "inconclusive"]
LEVEL = 0.9


@dataclass(frozen=True, eq=False)
class Comparison:
    """How much better the first diagnoser is than the second.

    `difference` is of net benefit at w = 1 and reference prevalence, first minus second;
    `low` and `high` are its 90 % interval, `p_value` is two-sided. `groups_needed` is how many
    groups like these would show it with a chance of 80 %, `visible_difference` what the groups
    at hand show as surely. `secondary` are the other differences with their p values adjusted
    together; `causes` describes, and tests nothing. `flipped` lists the cases that ended in
    another bucket or net benefit, with both answers (`_a`, `_b`).
    """

    verdict: Ruling
    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    groups: int
    groups_with_difference: int
    groups_needed: int | None
    visible_difference: float | None
    margin: float
    note: str | None
    secondary: list[Difference]
    causes: pd.DataFrame
    flipped: pd.DataFrame


def compare(
    first: Scores,
    second: Scores,
    *,
    margin: float,
    secondary: bool = True,
    seed: int = 0,
    level: float = LEVEL,
) -> Comparison:
    """Compare two diagnosers case by case.

    The verdict is `better` or `worse` if a two-sided sign-flip permutation over group sums
    has p < 0.05, else `equivalent` if the 90 % interval lies within +-margin, else
    `inconclusive`. With fewer than 6 groups that differ it is always `inconclusive`. A
    verdict that no case has is left out of the prevalence, and the note says so.

    Args:
        first: Outcomes of the one.
        second: Outcomes of the other.
        margin: The difference in net benefit that does not matter.
        secondary: Whether to compare other metrics and causes as well, for which both need
            their tables of faults and findings, and to say how many groups would be needed.
        seed: Seed of the flips and the bootstrap.
        level: Coverage of the interval of the difference, 90 % unless given.

    Raises:
        InputError: the two were not scored on the same labels, or margin is not positive.
    """
    if margin <= 0:
        raise InputError("must be positive", where="margin", found=margin)
    pairs = _paired(first, second)
    present = [verdict for verdict in PREVALENCE if (pairs["verdict"] == verdict).any()]
    sums = _group_sums(pairs, present)
    difference = float(_mean_at_prevalence(_weights(present))(sums.sum(axis=0)))
    parts = _group_parts(sums, present)
    count = differing(parts)
    p_value = sign_flip_p(parts, seed) if count >= MIN_GROUPS else None
    bounds = _bounds(sums, present, seed, level)
    tables = (_tables(first), _tables(second))
    return Comparison(
        _verdict(difference, p_value, bounds, margin),
        difference,
        bounds.low,
        bounds.high,
        p_value,
        len(parts),
        count,
        groups_needed(parts) if secondary else None,
        visible_difference(parts) if secondary else None,
        margin,
        _note(present, count),
        differences(*tables, seed) if secondary else [],
        causes(*tables) if secondary else pd.DataFrame(),
        flipped(pairs, first.findings, second.findings),
    )


def _tables(scores: Scores) -> Tables:
    return Tables(scores.cases, scores.faults, scores.findings)


def _paired(first: Scores, second: Scores) -> pd.DataFrame:
    same = ["case_id", "group", "verdict"]
    if not first.cases[same].equals(second.cases[same]):
        odd = sorted(set(first.cases["case_id"]) ^ set(second.cases["case_id"]))
        raise InputError("must be scored on the same labels", where="scores", found=odd[:5])
    other = second.cases[["case_id", *ANSWER]]
    return first.cases[[*same, *ANSWER]].merge(other, on="case_id", suffixes=("_a", "_b"))


def _group_sums(pairs: pd.DataFrame, present: list[str]) -> Array:
    """Per group: summed difference for each verdict, then number of cases for each."""
    difference = pairs[f"{COLUMN}_a"] - pairs[f"{COLUMN}_b"]
    columns = [difference.where(pairs["verdict"] == verdict, 0.0) for verdict in present]
    columns += [(pairs["verdict"] == verdict).astype(float) for verdict in present]
    frame = pd.concat(columns, axis=1, keys=range(len(columns)))
    return frame.groupby(pairs["group"], sort=True).sum().to_numpy(dtype=np.float64)


def _weights(present: list[str]) -> Array:
    weights = np.array([PREVALENCE[verdict] for verdict in present])
    normed: Array = weights / weights.sum()
    return normed


def _mean_at_prevalence(weights: Array) -> Statistic:
    """Return the weighted mean of the verdicts' means, of their sums and then their counts."""

    def mean(sums: Array) -> Array:
        half = len(weights)
        result: Array = (weights * sums[..., :half] / sums[..., half:]).sum(axis=-1)
        return result

    return mean


def _group_parts(sums: Array, present: list[str]) -> Array:
    """What each group adds to the difference; the parts sum to it."""
    half = len(present)
    counts = sums[:, half:].sum(axis=0)
    parts: Array = sums[:, :half] @ (_weights(present) / counts)
    return parts


def _bounds(sums: Array, present: list[str], seed: int, level: float) -> Bounds:
    mean = _mean_at_prevalence(_weights(present))
    units = sums[:, len(present) :]
    return statistic_bounds(sums, mean, units=units, seed=seed, level=level)


def _verdict(difference: float, p_value: float | None, bounds: Bounds, margin: float) -> Ruling:
    if p_value is None:
        return "inconclusive"
    if p_value < SIGNIFICANCE:
        return "better" if difference > 0 else "worse"
    if bounds.low is not None and bounds.high is not None:
        inside = -margin < bounds.low and bounds.high < margin
        return "equivalent" if inside else "inconclusive"
    return "inconclusive"


def _note(present: list[str], count: int) -> str | None:
    absent = [f"no {verdict} case" for verdict in PREVALENCE if verdict not in present]
    notes = [f"{', '.join(absent)}: the prevalence is that of the others"] if absent else []
    if count < MIN_GROUPS:
        notes.append(f"{count} groups differ, at least {MIN_GROUPS} are needed")
    return "; ".join(notes) or None
