"""Judging a result by a policy: each rule says pass, stop or inconclusive, with its numbers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from cases.errors import InputError
from harness.gate_baseline import baseline_rules
from harness.gate_family import Rule, settle
from harness.gate_figures import Figures
from harness.gate_thresholds import Limit
from harness.policy import Policy
from harness.policy_checks import check_names
from harness.ruling import GateReport, Ruling
from harness.stored import StoredResult
from scorers.tables import Tables

PUBLIC_TEST = "public_test"


def judge(
    policy: Policy,
    result: StoredResult,
    baseline: StoredResult | None,
    where: str | Path = "policy",
) -> GateReport:
    """Apply a policy to a result.

    Args:
        policy: The policy.
        result: The result.
        baseline: What it is compared with, given if and only if the policy has such a section.
        where: The policy's file, for errors.

    Raises:
        InputError: the result or the baseline must not be judged by this policy, or the policy
            names what there is not.
    """
    check_allowed(policy, result)
    if (policy.baseline is None) != (baseline is None):
        must = "must have a baseline section when a baseline is given, and only then"
        raise InputError(must, where=where, field="baseline")
    ours, theirs = result.tables(), None
    check_names(policy, ours, result.summary.metrics, where)
    if baseline is not None:
        check_allowed(policy, baseline)
        check_comparable(result, baseline)
        theirs = baseline.outcomes().reset_index()
    summary = result.summary
    return GateReport(
        suite=summary.suite,
        suite_digest=summary.suite_digest,
        scoring_version=summary.scoring_version,
        result=summary.diagnoser,
        baseline=baseline.summary.diagnoser if baseline else None,
        alpha=policy.alpha,
        splits=tuple(sorted(policy.splits)),
        inconclusive=policy.inconclusive,
        rulings=tuple(rulings(policy, ours, theirs)),
    )


def rulings(policy: Policy, ours: Tables, theirs: pd.DataFrame | None) -> list[Ruling]:
    """Apply all rules of a policy to outcomes, the statistical ones as one family.

    Args:
        policy: The policy.
        ours: All outcomes of the result.
        theirs: Table of cases of the baseline, in the order of the result's.
    """
    figures = Figures(ours)
    rules: list[Rule] = [Limit(rule, policy.split, figures) for rule in policy.thresholds]
    if policy.baseline is not None and theirs is not None:
        rules += baseline_rules(policy.baseline, policy.split, ours.cases, theirs)
    return settle(rules, policy.alpha)


def uses_public_test(policy: Policy, cases: pd.DataFrame) -> bool:
    """Whether a rule looks at cases of the public test split, named ones included.

    Args:
        policy: The policy.
        cases: Table of all cases of the result.
    """
    public = set(cases.loc[cases["split"] == PUBLIC_TEST, "case_id"])
    named = set(policy.baseline.must_not_flip) if policy.baseline else set()
    return bool(public and policy.splits & {PUBLIC_TEST, "all"}) or bool(named & public)


def check_allowed(policy: Policy, result: StoredResult) -> None:
    """Refuse a result that the policy's `require` does not admit."""
    summary, where = result.summary, result.folder
    if policy.require.sealed and not summary.isolation.sealed:
        raise InputError(
            "must come from a sealed run, or its diagnoser may have read the labels"
            " (--allow-unsealed, or require: {sealed: false}, admits it)",
            where=where,
            field="isolation.sealed",
            found=False,
        )
    if policy.require.ranked and not summary.ranked:
        must = "must be a ranked run (require: {ranked: false} admits others)"
        raise InputError(must, where=where, field="ranked", found=False)


def check_comparable(result: StoredResult, baseline: StoredResult) -> None:
    """Refuse to compare what was not asked the same questions or judged by the same rules."""
    for field in ("suite_digest", "scoring_version"):
        ours, theirs = getattr(result.summary, field), getattr(baseline.summary, field)
        if ours != theirs:
            must = f"must equal the result's {ours} to be compared"
            raise InputError(must, where=baseline.folder, field=field, found=theirs)
    ours, theirs = result.outcomes().index, baseline.outcomes().index
    if not ours.equals(theirs):
        odd = sorted(ours.symmetric_difference(theirs))
        must = "must hold the same cases as the result"
        raise InputError(must, where=baseline.folder / "outcomes.parquet", found=odd)
