"""Judging a result by a policy: each rule says pass, stop or inconclusive, with its numbers."""

from __future__ import annotations

from cases.errors import InputError
from harness.gate_baseline import judge_baseline
from harness.policy import Policy, Threshold
from harness.ruling import GateReport, Ruling, show
from harness.stored import Metric, StoredResult


def judge(policy: Policy, result: StoredResult, baseline: StoredResult | None) -> GateReport:
    """Apply a policy to a result.

    Raises:
        InputError: the result or the baseline must not be judged by this policy.
    """
    check_allowed(policy, result)
    rulings = [judge_threshold(threshold, result) for threshold in policy.thresholds]
    if (policy.baseline is None) != (baseline is None):
        must = "must have a baseline section when a baseline is given, and only then"
        raise InputError(must, where="policy", field="baseline")
    if policy.baseline is not None and baseline is not None:
        check_allowed(policy, baseline)
        check_comparable(result, baseline)
        rulings += judge_baseline(policy.baseline, result, baseline)
    summary = result.summary
    return GateReport(
        suite=summary.suite,
        suite_digest=summary.suite_digest,
        scoring_version=summary.scoring_version,
        result=summary.diagnoser,
        baseline=baseline.summary.diagnoser if baseline else None,
        inconclusive=policy.inconclusive,
        rulings=tuple(rulings),
    )


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


def judge_threshold(threshold: Threshold, result: StoredResult) -> Ruling:
    """Hold one metric against its limit."""
    metrics = result.summary.metrics
    if threshold.metric not in metrics:
        must = f"must be one of {', '.join(sorted(metrics))}"
        raise InputError(must, where="policy", field="thresholds.metric", found=threshold.metric)
    metric = metrics[threshold.metric]
    sign, limit = ("<=", threshold.max) if threshold.max is not None else (">=", threshold.min)
    assert limit is not None
    rule = f"{threshold.metric} {sign} {limit:g} ({threshold.by})"
    # A floor is a ceiling on the negated metric.
    best, worst = _ends(metric, threshold.by)
    if best is None or worst is None:
        absent = "no value" if metric.value is None else "no interval"
        return Ruling(rule, "inconclusive", show(metric), metric.note or absent)
    if threshold.max is None:
        best, worst, limit = -worst, -best, -limit
    if best > limit:
        return Ruling(rule, "stop", show(metric), "beyond the limit")
    if worst <= limit:
        return Ruling(rule, "pass", show(metric), "within the limit")
    return Ruling(rule, "inconclusive", show(metric), "the interval holds the limit")


def _ends(metric: Metric, by: str) -> tuple[float | None, float | None]:
    """Return the lowest and highest value that is held against the limit."""
    return (metric.low, metric.high) if by == "bound" else (metric.value, metric.value)
