"""Where a right answer stands among the roots, with ties in confidence taken by expectation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import comb

Probabilities = list[float]


def first_rank(confidences: Sequence[float], right: Collection[int]) -> Probabilities:
    """Return the chance that the first right answer stands at rank 1, 2, ...

    Answers are ranked by confidence, highest first; the order of equal ones is random. Of b
    tied answers with j right ones after o others, the first right one stands at rank o + p
    with probability C(b-p, j-1) / C(b, j).

    Args:
        confidences: One number per answer.
        right: Indices of the right answers.

    Returns:
        One probability per answer; their sum is 1, or 0 if none is right.

    >>> first_rank([0.9, 0.5, 0.5], {2})
    [0.0, 0.5, 0.5]
    """
    result = [0.0] * len(confidences)
    if not right:
        return result
    top = max(confidences[i] for i in right)
    ahead = sum(value > top for value in confidences)
    tied = [i for i, value in enumerate(confidences) if value == top]
    hits = sum(i in right for i in tied)
    for place in range(1, len(tied) - hits + 2):
        result[ahead + place - 1] = comb(len(tied) - place, hits - 1) / comb(len(tied), hits)
    return result


def reciprocal_rank(chances: Probabilities) -> float:
    """Return the expected 1/rank of the first right answer, 0 if there is none.

    >>> reciprocal_rank([0.0, 0.5, 0.5])
    0.41666666666666663
    """
    return sum(chance / rank for rank, chance in enumerate(chances, start=1))


def accuracy_at(k: int, chances_by_fault: Sequence[Probabilities]) -> float:
    """Return AC@k of one case: expected faults named by the first k roots / min(k, faults).

    As in RCAEval (Pham et al., 2024), with ties by expectation, and at most 1 because one
    finding may be right for two faults.

    >>> accuracy_at(3, [[1.0, 0.0], [0.0, 0.0]])
    0.5
    """
    expected = sum(sum(chances[:k]) for chances in chances_by_fault)
    return min(1.0, expected / min(k, len(chances_by_fault)))
