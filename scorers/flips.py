"""Paired tests over groups: signs flipped, and Holm's correction for several of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scorers.intervals import Array

EXACT_GROUPS = 12
PERMUTATIONS = 10_000
CHUNK = 1_000  # flips drawn at once, so that a thousand groups need no 80 MB
ROUNDING = 1e-12


def sign_flip_p(parts: Array, seed: int = 0) -> float:
    """Two-sided p value of a sum of `parts` whose signs are exchangeable under the null.

    Exact up to 12 parts that are not zero, else from 10,000 seeded flips (the observed signs
    being one of them).

    >>> sign_flip_p(np.ones(6))
    0.03125
    """
    return float(sign_flip_ps(parts[:, None], seed)[0])


def sign_flip_ps(parts: Array, seed: int = 0) -> Array:
    """Return the p value of every column of `parts`, shape (G, tests); see `sign_flip_p`."""
    p_values = np.empty(parts.shape[1])
    many = np.array([differing(column) > EXACT_GROUPS for column in parts.T], dtype=bool)
    for k in np.flatnonzero(~many):
        p_values[k] = _exact(parts[np.abs(parts[:, k]) > ROUNDING, k])
    if many.any():
        p_values[many] = _drawn(parts[:, many], seed)
    return p_values


def differing(parts: Array) -> int:
    """Count the parts that are not zero."""
    return int((np.abs(parts) > ROUNDING).sum())


def _exact(parts: Array) -> float:
    count = len(parts)
    bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
    flipped = np.abs((2 * bits - 1) @ parts)
    return float((flipped >= abs(parts.sum()) - ROUNDING).mean())


def _drawn(parts: Array, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    observed = np.abs(parts.sum(axis=0)) - ROUNDING
    reached = np.ones(parts.shape[1])  # by the observed signs
    for start in range(1, PERMUTATIONS, CHUNK):
        size = min(CHUNK, PERMUTATIONS - start)
        signs = 2.0 * rng.integers(2, size=(size, len(parts)), dtype=np.int8) - 1
        reached += (np.abs(signs @ parts) >= observed).sum(axis=0)
    result: Array = reached / PERMUTATIONS
    return result


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values adjusted for their number (Holm, 1979), in the order given.

    The k-th smallest of m is multiplied by m - k + 1, none falls below a smaller one, and none
    exceeds 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for done, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        least = max(least, min(1.0, (len(p_values) - done) * p_values[i]))
        adjusted[i] = least
    return adjusted
