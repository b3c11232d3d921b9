"""The gate's rules against a baseline, all paired case by case."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from harness.gate_counts import NewlyMisled, StayRight
from harness.gate_family import Rule, Settled
from harness.policy import BaselineRule
from harness.ruling import Ruling, Verdict, show
from scorers import Comparison, Scores, compare
from scorers.differing_cases import COLUMN


def baseline_rules(
    policy: BaselineRule, split: str, ours: pd.DataFrame, theirs: pd.DataFrame
) -> list[Rule]:
    """Return the rules of a policy's baseline section.

    Args:
        policy: The section.
        split: Which cases are compared; `must_not_flip` names its own.
        ours: Table of cases of the result.
        theirs: That of the baseline, the same cases in the same order.
    """
    kept = ours["split"] == split if split != "all" else ours["split"].notna()
    part, other = ours.loc[kept], theirs.loc[kept.to_numpy()]
    rules: list[Rule] = [NotWorse(policy, part, other)]
    if policy.max_newly_misled is not None:
        rules.append(NewlyMisled(policy.max_newly_misled, part, other))
    if policy.must_not_flip:
        rules.append(StayRight(policy.must_not_flip, ours, theirs))
    return rules


@dataclass(frozen=True, eq=False)
class NotWorse:
    """Net benefit is not lower than the baseline's by more than does not matter."""

    policy: BaselineRule
    ours: pd.DataFrame
    theirs: pd.DataFrame
    statistical: bool = True

    def broken(self, error: float) -> bool:
        """Whether the result is worse, and not by less than the margin.

        Worse is shown by the sign-flip permutation over group sums. Its distribution is
        symmetric, so that half its two-sided p value is the one-sided one.
        """
        found = self.comparison
        worse = found.p_value is not None and found.difference < 0 and found.p_value / 2 <= error
        return worse and not self._not_inferior

    def ruling(self, settled: Settled) -> Ruling:
        """Pass what is shown to lose less than the margin, stop what is shown to lose."""
        found, policy = self.comparison, self.policy
        verdict, why = self._verdict(settled)
        p_value = "" if found.p_value is None else f", p = {self._one_sided:.2g}"
        return Ruling(
            f"{policy.metric} not worse than the baseline's by {policy.margin:g}",
            verdict,
            f"{show(found.difference, found.low, found.high)}{p_value},"
            f" {found.groups_with_difference} of {found.groups} groups differ",
            why if found.note is None else f"{why}; {found.note}",
        )

    @cached_property
    def comparison(self) -> Comparison:
        """The paired comparison; its interval errs by the policy's alpha at each end."""
        column = self.policy.metric.removesuffix("_reference")
        level = 1 - 2 * self.policy.alpha
        scores = [_scores(cases, column) for cases in (self.ours, self.theirs)]
        return compare(*scores, margin=self.policy.margin, secondary=False, level=level)

    @property
    def _not_inferior(self) -> bool:
        low = self.comparison.low
        return low is not None and low > -self.policy.margin

    @property
    def _one_sided(self) -> float:
        found = self.comparison
        half = (found.p_value or 1.0) / 2
        return half if found.difference < 0 else 1 - half

    def _verdict(self, settled: Settled) -> tuple[Verdict, str]:
        found = self.comparison
        if settled.stopped:
            return "stop", f"worse than the baseline (one-sided error {settled.error:.2%})"
        if found.groups_with_difference == 0:
            return "pass", "no difference"
        if found.p_value is None:
            return "inconclusive", "too few groups differ"
        if self._not_inferior:
            return "pass", f"any loss is within the margin (error {self.policy.alpha:.2%})"
        return "inconclusive", "neither worse nor within the margin beyond doubt"


def _scores(cases: pd.DataFrame, column: str) -> Scores:
    """Give stored cases the shape that the comparison reads, with `column` for the compared one.

    It needs no faults, findings or figures.
    """
    findings = pd.DataFrame({"case_id": [], "cause": []}, dtype=str)
    cases = cases.assign(**{COLUMN: cases[column]}).reset_index(drop=True)
    return Scores(cases, pd.DataFrame(), findings, pd.DataFrame(), {})
