"""Logistic regression on one column, with and without a penalty, and without each group.

The penalty is Firth's (1993): Jeffreys' prior, which keeps the estimate finite where a cost
separates what is found from what is not, and needs no constant to be chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scorers.intervals import Array, Codes

MAX_STEPS = 50
SMALL_STEP = 1e-9
LONGEST_STEP = 5.0
MIN_INFORMATION = 1e-9


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients (k,), and what they would move by without each group, shape (G, k).

    `apart` is one Newton step from the fit, not a fit of its own for each group; it is not
    finite where the others say nothing about a coefficient.
    """

    coefficients: Array
    apart: Array


def fit(design: Array, right: Array, groups: Codes, *, offset: Array, firth: bool) -> Fit | None:
    """Fit P(right) = logistic(offset + design @ coefficients).

    Args:
        design: Columns of the regression, shape (n, k).
        right: 0 or 1 for each row, shape (n,).
        groups: Number of each row's group, 0 to G-1, shape (n,).
        offset: What is added as it is, shape (n,).
        firth: Whether to penalise.

    Returns:
        None where the steps do not come to rest: without penalty, where a line separates what
        is right from what is wrong.
    """
    coefficients = np.zeros(design.shape[1])
    for _ in range(MAX_STEPS):
        scores, curvature = _slopes(design, right, offset, coefficients, firth)
        information = curvature.sum(axis=0)
        if np.linalg.det(information) < MIN_INFORMATION:
            return None
        step = np.linalg.solve(information, scores.sum(axis=0))
        step *= min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), SMALL_STEP))
        coefficients = coefficients + step
        if np.abs(step).max() < SMALL_STEP:
            return Fit(coefficients, _without_each(scores, curvature, groups))
    return None


def _slopes(
    design: Array, right: Array, offset: Array, coefficients: Array, firth: bool
) -> tuple[Array, Array]:
    """Return each row's part of the score (n, k) and of the information (n, k, k)."""
    chance = 1 / (1 + np.exp(-(offset + design @ coefficients)))
    spread = chance * (1 - chance)
    curvature = spread[:, None, None] * design[:, :, None] * design[:, None, :]
    residual = right - chance
    if firth:
        inverse = np.linalg.pinv(curvature.sum(axis=0))
        leverage = spread * np.einsum("ni,ij,nj->n", design, inverse, design)
        residual = residual + leverage * (0.5 - chance)
    return residual[:, None] * design, curvature


def _without_each(scores: Array, curvature: Array, groups: Codes) -> Array:
    """Return by how much the coefficients move when each group is left out, shape (G, k)."""
    count, k = int(groups.max()) + 1, scores.shape[1]
    score, information = np.zeros((count, k)), np.zeros((count, k, k))
    np.add.at(score, groups, scores)
    np.add.at(information, groups, curvature)
    rest = information.sum(axis=0) - information
    sound = np.linalg.det(rest) > MIN_INFORMATION
    apart = np.full((count, k), np.nan)
    apart[sound] = -np.linalg.solve(rest[sound], score[sound][:, :, None])[:, :, 0]
    return apart
