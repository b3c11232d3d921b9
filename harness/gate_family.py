"""All rules that may stop by chance, as one family of tests.

Each rule that rests on an interval or on a p value errs now and then. Holm's procedure (1979)
holds the chance that any of them stops a result that keeps all rules below `alpha`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.ruling import Ruling


class Rule(Protocol):
    """One rule; a statistical one can be asked at any error whether it is broken."""

    @property
    def statistical(self) -> bool:
        """Whether chance can break the rule, so that it belongs to the family."""

    def broken(self, error: float) -> bool:
        """Whether the rule is shown to be broken, erring one time in 1/`error` at most."""

    def ruling(self, settled: Settled) -> Ruling:
        """Say pass, stop or inconclusive."""


@dataclass(frozen=True)
class Settled:
    """What came of a rule's test.

    Attributes:
        stopped: Whether it stops. Of a rule that is not statistical, whatever it says itself.
        error: The one-sided error at which it was tested last, in 0..0.5.
        alpha: The family's; at which a rule that stands is shown to be kept.
    """

    stopped: bool
    error: float
    alpha: float


def settle(rules: Sequence[Rule], alpha: float) -> list[Ruling]:
    """Let every rule say what it says when the statistical ones share one error, `alpha`.

    With m of them the first is tested at alpha/m; each that is broken leaves its share to the
    rest, which are then tested at alpha/(m - 1), and so on.
    """
    family = [i for i, rule in enumerate(rules) if rule.statistical]
    stopped: dict[int, float] = {}
    error = alpha / max(len(family), 1)
    while len(stopped) < len(family):
        error = alpha / (len(family) - len(stopped))
        new = [i for i in family if i not in stopped and rules[i].broken(error)]
        if not new:
            break
        stopped |= dict.fromkeys(new, error)
    return [
        rule.ruling(Settled(i in stopped, stopped.get(i, error), alpha))
        for i, rule in enumerate(rules)
    ]
