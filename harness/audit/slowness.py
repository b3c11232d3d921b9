"""How much of the cause the mere slowdown gives away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.judge import Truth

NEIGHBOURS = 5
PERMUTATIONS = 2000


@dataclass(frozen=True)
class SlownessGuess:
    """Guessing the cause of single-fault cases from the slowdown alone.

    Attributes:
        accuracy: Share of causes guessed right by the cases of other groups that are nearest
            in log slowdown.
        chance: The mean accuracy under permuted causes.
        p_value: Permutation test of accuracy above chance.
        cases: Number of cases.
    """

    accuracy: float
    chance: float
    p_value: float
    cases: int


def slowness_guess(
    slowdowns: Mapping[str, float], truths: Mapping[str, Truth], seed: int = 0
) -> SlownessGuess | None:
    """Guess causes from slowdown; None with fewer than two causes or two groups.

    Args:
        slowdowns: Case id -> mean step time over the reference run's.
        truths: Labels by case id.
        seed: Seed of the permutations.
    """
    judged = [
        case_id
        for case_id in slowdowns
        if truths[case_id].verdict == "faulty" and len(truths[case_id].faults) == 1
    ]
    causes = np.array([truths[case_id].faults[0].cause for case_id in judged])
    groups = np.array([truths[case_id].group for case_id in judged])
    if len(set(causes)) < 2 or len(set(groups)) < 2:
        return None
    distance = np.abs(np.subtract.outer(*[np.log([slowdowns[c] for c in judged])] * 2))
    distance[groups[:, None] == groups[None, :]] = np.inf
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBOURS]
    usable = np.isfinite(np.take_along_axis(distance, nearest, axis=1))
    codes = np.unique(causes, return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    draws = [codes, *(rng.permutation(codes) for _ in range(PERMUTATIONS))]
    found = np.array([_accuracy(draw, nearest, usable) for draw in draws])
    return SlownessGuess(
        accuracy=float(found[0]),
        chance=float(found[1:].mean()),
        p_value=float(np.mean(found >= found[0])),
        cases=len(judged),
    )


def _accuracy(codes: np.ndarray, nearest: np.ndarray, usable: np.ndarray) -> float:
    votes = np.zeros((len(codes), codes.max() + 1))
    rows = np.arange(len(codes))
    for column in range(nearest.shape[1]):
        # Nearer neighbours break ties.
        np.add.at(votes, (rows, codes[nearest[:, column]]), usable[:, column] * (1 - 0.01 * column))
    return float(np.mean(votes.argmax(axis=1) == codes))
