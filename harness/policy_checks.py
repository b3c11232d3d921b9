"""What in a policy only the result can tell: whether the names that it uses mean anything."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cases.errors import InputError
from cases.taxonomy import Taxonomy
from harness.policy import Policy, Threshold
from scorers.levels import LEVELS
from scorers.rate_metrics import RATES
from scorers.tables import Tables

SHARES = {*RATES, *(f"f1_{level}" for level in LEVELS)}
SHARE_PREFIXES = ("recall_", "precision_", "f1_")


def check_names(
    policy: Policy, tables: Tables, metrics: Collection[str], where: str | Path
) -> None:
    """Refuse a policy that names what there is not.

    Args:
        policy: The policy.
        tables: All outcomes of the result.
        metrics: Names of all metrics that the result has.
        where: The policy's file.

    Raises:
        InputError: names the field, what must hold, and what was found.
    """
    splits, taxonomy = set(tables.cases["split"]), Taxonomy.load()
    _among(policy.split, {*splits, "all"}, where, "split", "a split that the result has cases of")
    for number, rule in enumerate(policy.thresholds):
        field = f"thresholds.{number}"
        _among(rule.metric, metrics, where, f"{field}.metric", "a metric of the result")
        must = "a split that the result has cases of"
        _among(rule.split, {*splits, "all"}, where, f"{field}.split", must)
        _among(rule.domain, taxonomy.domains, where, f"{field}.domain", "a domain of the taxonomy")
        _among(rule.cause, taxonomy.causes, where, f"{field}.cause", "a cause of the taxonomy")
        _check_limit(rule, where, field)
    named = set(policy.baseline.must_not_flip) if policy.baseline else set()
    unknown = sorted(named - set(tables.cases["case_id"]))
    if unknown:
        must = "must name cases of the suite"
        raise InputError(must, where=where, field="baseline.must_not_flip", found=unknown)


def _among(
    name: str | None, known: Collection[str], where: str | Path, field: str, what: str
) -> None:
    if name is not None and name not in known:
        must = f"must be {what}, one of {', '.join(sorted(known))}"
        raise InputError(must, where=where, field=field, found=name)


def _check_limit(rule: Threshold, where: str | Path, field: str) -> None:
    """A limit on a share that is no share (20 for 20 %) would pass whatever comes."""
    name = rule.metric.removesuffix("_applicable")
    share = name in SHARES or name.startswith(SHARE_PREFIXES)
    if share and not 0 <= rule.limit <= 1:
        side = "min" if rule.max is None else "max"
        must = f"must be within 0 and 1, for {rule.metric} is a share"
        raise InputError(must, where=where, field=f"{field}.{side}", found=rule.limit)
