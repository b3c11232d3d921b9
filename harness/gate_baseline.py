"""The gate's rules against a baseline, all paired case by case."""

from __future__ import annotations

import pandas as pd

from cases.errors import InputError
from harness.policy import BaselineRule
from harness.ruling import Ruling, Verdict, show
from harness.stored import Metric, StoredResult
from scorers import Comparison, Scores, compare

# The buckets of a case that was answered wholly right, by what was true of it.
RIGHT_BUCKETS = {"found", "quiet", "abstained_informed"}
_SHOWN = 10  # cases named in one ruling


def judge_baseline(
    policy: BaselineRule, result: StoredResult, baseline: StoredResult
) -> list[Ruling]:
    """Apply the baseline rules; both results must be of the same suite digest."""
    ours, theirs = result.outcomes(), baseline.outcomes()
    if not ours.index.equals(theirs.index):
        odd = sorted(ours.index.symmetric_difference(theirs.index))
        must = "must hold the same cases as the result"
        raise InputError(must, where=baseline.folder / "outcomes.parquet", found=odd)
    comparison = compare(_scores(ours), _scores(theirs), margin=policy.margin, secondary=False)
    rulings = [judge_comparison(policy, comparison)]
    if policy.max_newly_misled is not None:
        rulings.append(judge_newly_misled(policy.max_newly_misled, ours, theirs))
    if policy.must_not_flip:
        rulings.append(judge_flips(policy.must_not_flip, ours, theirs))
    return rulings


def _scores(outcomes: pd.DataFrame) -> Scores:
    """Give stored cases the shape that the comparison reads; it needs no faults or figures."""
    findings = pd.DataFrame({"case_id": [], "cause": []}, dtype=str)
    return Scores(outcomes.reset_index(), pd.DataFrame(), findings, pd.DataFrame(), {})


def judge_comparison(policy: BaselineRule, comparison: Comparison) -> Ruling:
    """Stop what is shown to be worse, unless it is shown to be so by less than the margin.

    Worse is shown by the two-sided p value of the sign-flip permutation, `alpha` being the
    bound; a loss within the margin by the lower end of the difference's 90 % interval, thus
    at 5 % one-sided.
    """
    interval = Metric(value=comparison.difference, low=comparison.low, high=comparison.high)
    p_value, count = comparison.p_value, comparison.groups_with_difference
    tested = "" if p_value is None else f", p = {p_value:.2g}"
    verdict, why = _compared(policy, comparison)
    return Ruling(
        f"{policy.metric} not worse than the baseline's by {policy.margin:g}",
        verdict,
        f"{show(interval)}{tested}, {count} groups differ",
        why if comparison.note is None else f"{why}; {comparison.note}",
    )


def _compared(policy: BaselineRule, comparison: Comparison) -> tuple[Verdict, str]:
    if comparison.groups_with_difference == 0:
        return "pass", "no difference"
    if comparison.p_value is None:
        return "inconclusive", "too few groups differ"
    if comparison.low is not None and comparison.low > -policy.margin:
        return "pass", "any loss is within the margin"
    if comparison.difference < 0 and comparison.p_value < policy.alpha:
        return "stop", "worse than the baseline"
    return "inconclusive", "neither worse nor within the margin beyond doubt"


def judge_newly_misled(limit: int, ours: pd.DataFrame, theirs: pd.DataFrame) -> Ruling:
    """Count the cases on which the result is misled and the baseline was not."""
    new = ours.index[ours["misled"].astype(bool) & ~theirs["misled"].astype(bool)]
    verdict: Verdict = "pass" if len(new) <= limit else "stop"
    return Ruling(f"newly misled cases <= {limit}", verdict, str(len(new)), name_cases(new))


def judge_flips(cases: tuple[str, ...], ours: pd.DataFrame, theirs: pd.DataFrame) -> Ruling:
    """Stop if a named case that the baseline got right is not right any more."""
    unknown = sorted(set(cases) - set(ours.index))
    if unknown:
        must = "must name cases of the suite"
        raise InputError(must, where="policy", field="baseline.must_not_flip", found=unknown)
    named = list(cases)
    lost = is_right(theirs.loc[named]) & ~is_right(ours.loc[named])
    flipped = lost.index[lost]
    verdict: Verdict = "pass" if flipped.empty else "stop"
    rule, found = f"{len(named)} named cases stay right", f"{len(flipped)} flipped"
    return Ruling(rule, verdict, found, name_cases(flipped))


def is_right(outcomes: pd.DataFrame) -> pd.Series[bool]:
    """Say for each case whether it was answered rightly and without a false finding."""
    return outcomes["bucket"].isin(RIGHT_BUCKETS) & ~outcomes["misled"].astype(bool)


def name_cases(cases: pd.Index[str]) -> str:
    """List case ids, at most ten of them."""
    more = f" and {len(cases) - _SHOWN} more" if len(cases) > _SHOWN else ""
    return ", ".join(cases[:_SHOWN]) + more if len(cases) else "none"
