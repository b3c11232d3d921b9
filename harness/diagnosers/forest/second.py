"""A second finding: does a rule that holds beside the named cause tell of another fault?

A fault shows in more places than its own, so rules of other causes often hold as well. How often
one of them holds where the named cause is the only fault (its echo) was counted in training. A
logistic regression weighs that, the trees' share of the other cause, and how early its rule stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from harness.diagnosers.features.arrays import Floats
from harness.diagnosers.forest.observe import Observed
from harness.diagnosers.rules.rule import Rule

# By net benefit a finding gains when it is right what it costs when it is wrong.
WORTH_SAYING = 0.5
PRIOR = 2.0  # cases of the usual rate that an echo starts from
LEAST_SHARE = 0.01

Echoes = Mapping[str, Mapping[str, int]]


def others(seen: Observed, first: str) -> list[tuple[int, Rule]]:
    """Rules that hold beside the named cause's, with their places in the list."""
    return [(place, rule) for place, rule in enumerate(seen.rules) if rule.cause != first]


def rows(
    found: Sequence[tuple[int, Rule]],
    shares: Mapping[str, float],
    first: str,
    alone: Mapping[str, int],
    echoes: Echoes,
) -> Floats:
    """One row a rule: logit of the trees' share, place in the list, log of how often it echoes.

    Args:
        found: What `others` gave.
        shares: The trees' share of each cause.
        first: The cause that is named.
        alone: Cause -> training cases of which it is the only fault.
        echoes: Cause -> other cause -> how many of these its rule holds in as well.
    """
    return np.array(
        [
            [
                _logit(shares.get(rule.cause, 0.0)),
                place,
                np.log(echo(first, rule.cause, alone, echoes)),
            ]
            for place, rule in found
        ]
    ).reshape(-1, 3)


def echo(first: str, other: str, alone: Mapping[str, int], echoes: Echoes) -> float:
    """Share of the cases of a lone fault in which the rule of another cause holds.

    Few cases lean on how often that rule holds without its cause at all.

    >>> echo("a", "b", {"a": 8, "c": 10}, {"a": {"b": 4}})
    0.45
    """
    usual = (sum(of.get(other, 0) for of in echoes.values()) + 0.5) / max(sum(alone.values()), 1)
    seen = echoes.get(first, {}).get(other, 0)
    return (seen + PRIOR * usual) / (alone.get(first, 0) + PRIOR)


def _logit(share: float) -> float:
    return float(np.log((share + LEAST_SHARE) / (1 + LEAST_SHARE - share)))
