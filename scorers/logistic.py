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
        residual, spread = _slopes(design, right, offset, coefficients, firth)
        information = design.T @ (spread[:, None] * design)
        if np.linalg.det(information) < MIN_INFORMATION:
            return None
        step = np.linalg.solve(information, design.T @ residual)
        step *= min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), SMALL_STEP))
        coefficients = coefficients + step
        if np.abs(step).max() < SMALL_STEP:
            return Fit(coefficients, _without_each(design, residual, spread, groups))
    return None


def _slopes(
    design: Array, right: Array, offset: Array, coefficients: Array, firth: bool
) -> tuple[Array, Array]:
    """Return each row's residual and variance, shapes (n,)."""
    chance = 1 / (1 + np.exp(-(offset + design @ coefficients)))
    spread = chance * (1 - chance)
    residual = right - chance
    if firth:
        inverse = np.linalg.pinv(design.T @ (spread[:, None] * design))
        leverage = spread * ((design @ inverse) * design).sum(axis=1)
        residual = residual + leverage * (0.5 - chance)
    return residual, spread


def _without_each(design: Array, residual: Array, spread: Array, groups: Codes) -> Array:
    """Return by how much the coefficients move when each group is left out, shape (G, k)."""
    score = _by_group(residual[:, None] * design, groups)
    information = _by_group(spread[:, None, None] * design[:, :, None] * design[:, None], groups)
    rest = information.sum(axis=0) - information
    sound = np.linalg.det(rest) > MIN_INFORMATION
    apart = np.full(score.shape, np.nan)
    apart[sound] = -np.linalg.solve(rest[sound], score[sound][:, :, None])[:, :, 0]
    return apart


def _by_group(rows: Array, groups: Codes) -> Array:
    """Sum the rows of each group, shape (G, ...)."""
    flat = rows.reshape(len(rows), -1)
    sums = [np.bincount(groups, weights=column) for column in flat.T]
    result: Array = np.stack(sums, axis=1, dtype=np.float64).reshape(-1, *rows.shape[1:])
    return result
