"""A linear classifier with exact permutation tests, small enough to refit thousands of times.

Ridge regression on the class gives each held-out score as a fixed linear function of the
training labels, so a refit under permuted labels is one matrix product and the permutation
test needs no shortcut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RIDGE = 1.0
PERMUTATIONS = 2000
BOOTSTRAPS = 2000
ONE_SIDED = 0.95


@dataclass(frozen=True)
class Separation:
    """How well features tell two classes apart, on groups that were held out.

    Attributes:
        auc: Chance that a positive scores above a negative of the same group.
        auc_high: One-sided 95 % upper bound, bootstrap over groups.
        pooled_auc: The same over pairs of all groups.
        p_value: Permutation within groups; the smaller of both AUCs' p-values, doubled.
        cases: Number of cases.
        groups: Number of groups that hold both classes.
    """

    auc: float
    auc_high: float
    pooled_auc: float
    p_value: float
    cases: int
    groups: int


def separation(
    features: pd.DataFrame, positive: NDArray[np.bool_], groups: NDArray[np.str_], seed: int = 0
) -> Separation | None:
    """Cross-validate by group and test; None with fewer than two groups of both classes.

    Args:
        features: One row per case; text columns are one-hot encoded.
        positive: The class of each case.
        groups: The group of each case; a group is held out as a whole.
        seed: Seed of permutations and bootstrap.
    """
    mixed = [group for group in np.unique(groups) if 0 < positive[groups == group].mean() < 1]
    if len(mixed) < 2:
        return None
    rng = np.random.default_rng(seed)
    smoother = _held_out(design(features), groups)
    labels = np.vstack([positive, *_permuted(positive, groups, rng)]).astype(float)
    scores = labels @ smoother.T
    within, weights = _within_auc(scores, labels, groups, mixed)
    pooled = np.array([auc(s, y) for s, y in zip(scores, labels.astype(bool), strict=True)])
    totals = np.average(within, axis=1, weights=weights)
    # Held-out scores of a useless classifier lean below one half: its own null says how far.
    tails = [(np.sum(values >= values[0])) / len(values) for values in (totals, pooled)]
    return Separation(
        auc=float(totals[0]),
        auc_high=_bootstrap_high(within[0], weights, rng),
        pooled_auc=float(pooled[0]),
        p_value=float(min(1.0, 2 * min(tails))),
        cases=len(positive),
        groups=len(mixed),
    )


def auc(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """Chance that a positive scores above a negative; ties count one half.

    >>> auc(np.array([1.0, 2.0, 2.0]), np.array([False, True, False]))
    0.75
    """
    difference = scores[positive][:, None] - scores[~positive][None, :]
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))


def design(features: pd.DataFrame) -> Floats:
    """Columns of mean 0 and spread 1, (cases, columns): numbers by rank, texts one-hot."""
    numeric = features.select_dtypes("number").astype(float)
    texts = features.drop(columns=list(numeric.columns)).astype(str)
    # Ranks instead of values: a leak is found whatever its scale, and no outlier rules the fit.
    dummies = [pd.get_dummies(texts, dtype=float)] if len(texts.columns) else []
    x = pd.concat([numeric.rank(), *dummies], axis="columns").fillna(-1.0).to_numpy()
    spread = x.std(axis=0)
    kept = x[:, spread > 0]
    return np.asarray((kept - kept.mean(axis=0)) / spread[spread > 0])


def _held_out(x: Floats, groups: NDArray[np.str_]) -> Floats:
    """Matrix that turns labels into scores, each of a model that never saw the case's group."""
    smoother = np.zeros((len(x), len(x)))
    for group in np.unique(groups):
        test, train = groups == group, groups != group
        known = x[train] - x[train].mean(axis=0)
        gram = known @ known.T + RIDGE * x.shape[1] * np.eye(train.sum())
        center = np.eye(train.sum()) - 1 / train.sum()
        weights = (x[test] - x[train].mean(axis=0)) @ known.T @ np.linalg.solve(gram, center)
        smoother[np.ix_(test, train)] = weights
    return smoother


def _permuted(
    positive: NDArray[np.bool_], groups: NDArray[np.str_], rng: np.random.Generator
) -> NDArray[np.bool_]:
    labels = np.tile(positive, (PERMUTATIONS, 1))
    for group in np.unique(groups):
        inside = groups == group
        labels[:, inside] = rng.permuted(labels[:, inside], axis=1)
    return labels


def _within_auc(
    scores: Floats, labels: Floats, groups: NDArray[np.str_], mixed: list[np.str_]
) -> tuple[Floats, Floats]:
    """AUC of each labelling (rows) in each group that holds both classes (columns)."""
    result, weights = np.empty((len(scores), len(mixed))), np.empty(len(mixed))
    for column, group in enumerate(mixed):
        s, y = scores[:, groups == group], labels[:, groups == group]
        above = np.sign(s[:, :, None] - s[:, None, :]) / 2 + 0.5
        pairs = y[:, :, None] * (1 - y[:, None, :])
        weights[column] = pairs[0].sum()
        result[:, column] = (above * pairs).sum(axis=(1, 2)) / weights[column]
    return result, weights


def _bootstrap_high(within: Floats, weights: Floats, rng: np.random.Generator) -> float:
    draws = rng.integers(0, len(within), (BOOTSTRAPS, len(within)))
    means = (within * weights)[draws].sum(axis=1) / weights[draws].sum(axis=1)
    return float(np.quantile(means, ONE_SIDED))
