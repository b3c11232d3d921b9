"""What confidence is worth: how often findings of each confidence are right."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import fft

from scorers.intervals import Array

BINS = 10


def reliability(confidences: Array, right: Array) -> pd.DataFrame:
    """Count findings by tenths of confidence, 1.0 in the last.

    Args:
        confidences: Within 0..1, shape (n,).
        right: 0 or 1, shape (n,).

    Returns:
        A row for each tenth that has findings: low, high, n, confidence (mean), right (share),
        by_chance (by how much the number of right ones differs from the expected one, on
        average, if each is right with its own confidence).
    """
    bins = np.minimum((confidences * BINS).astype(int), BINS - 1)
    rows = []
    for tenth in np.unique(bins):
        own = bins == tenth
        rows.append(
            {
                "low": tenth / BINS,
                "high": (tenth + 1) / BINS,
                "n": int(own.sum()),
                "confidence": float(confidences[own].mean()),
                "right": float(right[own].mean()),
                "by_chance": expected_deviation(confidences[own]),
            }
        )
    return pd.DataFrame(rows, columns=["low", "high", "n", "confidence", "right", "by_chance"])


def ece(table: pd.DataFrame) -> float:
    """Return the expected calibration error: mean over findings of their tenth's error.

    After Naeini, Cooper and Hauskrecht (2015), with 10 tenths of equal width.
    """
    error = (table["right"] - table["confidence"]).abs() * table["n"]
    return float(error.sum() / table["n"].sum())


def ece_by_chance(table: pd.DataFrame) -> float:
    """Return the mean ECE of a perfectly calibrated answer with the same confidences.

    It is not 0: of ten findings with confidence 0.5 seldom exactly five are right.
    """
    return float(table["by_chance"].sum() / table["n"].sum())


def expected_deviation(chances: Array) -> float:
    """Return E|S - E S| of the number S of independent events with these chances.

    >>> expected_deviation(np.array([0.5, 0.5]))
    0.5
    """
    distribution = _number_of_events(chances)
    return float(distribution @ np.abs(np.arange(len(distribution)) - chances.sum()))


def _number_of_events(chances: Array) -> Array:
    """Return the distribution of the number of events: products of (1 - p) + p z, in pairs."""
    factors = np.stack([1 - chances, chances], axis=1)
    while len(factors) > 1:
        if len(factors) % 2:
            certain = np.zeros((1, factors.shape[1]))
            certain[0, 0] = 1.0
            factors = np.concatenate([factors, certain])
        width = 2 * factors.shape[1] - 1
        size = fft.next_fast_len(width, real=True)
        even, odd = fft.rfft(factors[::2], size), fft.rfft(factors[1::2], size)
        factors = fft.irfft(even * odd, size)[:, :width]
    distribution: Array = factors[0]
    return distribution
