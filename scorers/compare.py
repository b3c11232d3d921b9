"""A paired comparison of two diagnosers on the same labelled cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from cases.errors import InputError
from scorers.intervals import MIN_GROUPS, Array, Bounds, Statistic, statistic_bounds
from scorers.metrics import PREVALENCE
from scorers.scores import Scores

Ruling = Literal["better", "worse", "equivalent", "inconclusive"]
COLUMN = "net_benefit_w1"
SIGNIFICANCE = 0.05
EXACT_GROUPS = 12
PERMUTATIONS = 10_000
ANSWER = ["bucket", "misled", COLUMN]


@dataclass(frozen=True, eq=False)
class Comparison:
    """How much better the first diagnoser is than the second.

    `difference` is of net benefit at w = 1 and reference prevalence, first minus second;
    `low` and `high` are its 90 % interval, `p_value` is two-sided. `flipped` lists the cases
    that ended in another bucket or net benefit, with both answers (`_a`, `_b`).
    """

    verdict: Ruling
    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    groups_with_difference: int
    margin: float
    note: str | None
    flipped: pd.DataFrame


def compare(first: Scores, second: Scores, *, margin: float, seed: int = 0) -> Comparison:
    """Compare two diagnosers case by case.

    The verdict is `better` or `worse` if a two-sided sign-flip permutation over group sums
    has p < 0.05, else `equivalent` if the 90 % interval lies within +-margin, else
    `inconclusive`. With fewer than 6 groups that differ it is always `inconclusive`. A
    verdict that no case has is left out of the prevalence, and the note says so.

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
    differing = int((np.abs(parts) > 1e-12).sum())
    p_value = sign_flip_p(parts, seed) if differing >= MIN_GROUPS else None
    bounds = _bounds(sums, present, seed)
    return Comparison(
        _verdict(difference, p_value, bounds, margin),
        difference,
        bounds.low,
        bounds.high,
        p_value,
        differing,
        margin,
        _note(present, differing),
        _flipped(pairs, first, second),
    )


def sign_flip_p(parts: Array, seed: int = 0) -> float:
    """Two-sided p value of a sum of `parts` whose signs are exchangeable under the null.

    Exact up to 12 parts that are not zero, else from 10,000 seeded flips (plus the observed).

    >>> sign_flip_p(np.ones(6))
    0.03125
    """
    parts = parts[np.abs(parts) > 1e-12]
    count = len(parts)
    if count <= EXACT_GROUPS:
        bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
    else:
        bits = np.random.default_rng(seed).integers(2, size=(PERMUTATIONS, count))
        bits[0] = 1  # the observed signs are one of the flips
    flipped = np.abs((2 * bits - 1) @ parts)
    return float((flipped >= abs(parts.sum()) - 1e-12).mean())


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


def _bounds(sums: Array, present: list[str], seed: int) -> Bounds:
    half = len(present)
    groups = int((sums[:, half:] > 0).sum(axis=0).min())
    mean = _mean_at_prevalence(_weights(present))
    return statistic_bounds(sums, mean, groups=groups, seed=seed, level=0.9)


def _verdict(difference: float, p_value: float | None, bounds: Bounds, margin: float) -> Ruling:
    if p_value is None:
        return "inconclusive"
    if p_value < SIGNIFICANCE:
        return "better" if difference > 0 else "worse"
    if bounds.low is not None and bounds.high is not None:
        inside = -margin < bounds.low and bounds.high < margin
        return "equivalent" if inside else "inconclusive"
    return "inconclusive"


def _note(present: list[str], differing: int) -> str | None:
    absent = [f"no {verdict} case" for verdict in PREVALENCE if verdict not in present]
    notes = [f"{', '.join(absent)}: the prevalence is that of the others"] if absent else []
    if differing < MIN_GROUPS:
        notes.append(f"{differing} groups differ, at least {MIN_GROUPS} are needed")
    return "; ".join(notes) or None


def _flipped(pairs: pd.DataFrame, first: Scores, second: Scores) -> pd.DataFrame:
    other = pairs["bucket_a"] != pairs["bucket_b"]
    other |= (pairs[f"{COLUMN}_a"] - pairs[f"{COLUMN}_b"]).abs() > 1e-12
    rows = pairs.loc[other].reset_index(drop=True)
    for suffix, scores in (("_a", first), ("_b", second)):
        blamed = scores.findings.groupby("case_id")["cause"].agg(", ".join).to_dict()
        rows[f"blamed{suffix}"] = [blamed.get(case_id, "") for case_id in rows["case_id"]]
    return rows
