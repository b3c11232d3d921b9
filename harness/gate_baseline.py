"""The gate's rules against a baseline, all paired case by case."""

from __future__ import annotations

import pandas as pd

from cases.errors import InputError
from harness.policy import BaselineRule
from harness.ruling import Ruling, Verdict
from harness.stored import StoredResult

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
    rulings = []
    if policy.max_newly_misled is not None:
        rulings.append(judge_newly_misled(policy.max_newly_misled, ours, theirs))
    if policy.must_not_flip:
        rulings.append(judge_flips(policy.must_not_flip, ours, theirs))
    return rulings


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
    flipped = theirs.loc[named].index[is_right(theirs.loc[named]) & ~is_right(ours.loc[named])]
    verdict: Verdict = "pass" if flipped.empty else "stop"
    return Ruling(
        f"{len(named)} named cases stay right",
        verdict,
        f"{len(flipped)} flipped",
        name_cases(flipped),
    )


def is_right(outcomes: pd.DataFrame) -> pd.Series[bool]:
    """Say for each case whether it was answered rightly and without a false finding."""
    return outcomes["bucket"].isin(RIGHT_BUCKETS) & ~outcomes["misled"].astype(bool)


def name_cases(cases: pd.Index[str]) -> str:
    """List case ids, at most ten of them."""
    more = f" and {len(cases) - _SHOWN} more" if len(cases) > _SHOWN else ""
    return ", ".join(cases[:_SHOWN]) + more if len(cases) else "none"
