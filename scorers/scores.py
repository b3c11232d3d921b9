"""The whole judgement of one diagnoser on one set of labelled cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import pandas as pd

from cases.errors import HarnessError, InputError
from scorers.buckets import CASE_BUCKETS
from scorers.causes import by_cause
from scorers.confusion import confusion_table
from scorers.domains import recall_by_domain
from scorers.inputs import Label, Response, Tree, check
from scorers.intervals import LEVEL
from scorers.lineage import Lineage
from scorers.metric import Metric
from scorers.metrics import compute
from scorers.prepared import prepare
from scorers.settling import FAULT_BUCKETS
from scorers.severity import recall_by_severity
from scorers.tables import Tables, build

SCORING_VERSION = "1.1"


@dataclass(frozen=True, eq=False)
class Scores:
    """Outcomes and figures.

    `cases`, `faults` and `findings` hold one row each, sorted by case; `confusion` counts
    true cause x blamed cause; `metrics` are by name, those that end in `_applicable` leave
    out the cases that the diagnoser declared unsupported.
    """

    cases: pd.DataFrame
    faults: pd.DataFrame
    findings: pd.DataFrame
    confusion: pd.DataFrame
    metrics: dict[str, Metric]

    def buckets(self) -> dict[str, dict[str, int]]:
        """Count faults, and cases by verdict, in each of their buckets, zeros included."""
        counts = {"faults": _count(self.faults, FAULT_BUCKETS)}
        for verdict, names in CASE_BUCKETS.items():
            own = self.cases.loc[self.cases["verdict"] == verdict]
            counts[verdict] = _count(own, names)
        return counts

    def summary(self) -> dict[str, Any]:
        """Return all figures as JSON-ready values."""
        return {
            "scoring_version": SCORING_VERSION,
            "cases": len(self.cases),
            "groups": int(self.cases["group"].nunique()),
            "composition": {
                verdict: int((self.cases["verdict"] == verdict).sum()) for verdict in CASE_BUCKETS
            },
            "buckets": self.buckets(),
            "metrics": {
                name: {k: v for k, v in asdict(metric).items() if k != "name"}
                for name, metric in self.metrics.items()
            },
            "confusion": self.confusion.to_dict(orient="records"),
        }


def score(
    labels: Sequence[Label],
    responses: Mapping[str, Response],
    taxonomy: Tree,
    *,
    train_median_lost_fraction: float | None = None,
    seed: int = 0,
) -> Scores:
    """Judge one diagnoser's responses; the order of labels and responses does not matter.

    Args:
        labels: What is true, one per case.
        responses: What came back, by case id, one per label and no other.
        taxonomy: The tree of causes.
        train_median_lost_fraction: The floor of `lost_fraction_error`: what to predict for
            every fault when nothing but the train split is known.
        seed: Seed of the bootstrap.

    Raises:
        InputError: there is no label.
        HarnessError: a label has no response, a response no label, or an id stands twice.
    """
    ordered = sorted(labels, key=lambda label: label.case_id)
    _check_pairing(ordered, responses)
    tree = Lineage.of(taxonomy)
    checked = {label.case_id: check(responses[label.case_id], tree) for label in ordered}
    tables = build(ordered, checked, tree)
    return Scores(
        tables.cases,
        tables.faults,
        tables.findings,
        confusion_table(tables),
        figures(tables, train_median_lost_fraction, seed),
    )


def figures(
    tables: Tables, floor: float | None = None, seed: int = 0, level: float = LEVEL
) -> dict[str, Metric]:
    """Compute every metric of outcomes, or of a part of them, by name.

    Args:
        tables: Rows of cases, and of their faults and findings.
        floor: The median lost fraction of a train split, None if unknown.
        seed: Seed of the bootstrap.
        level: Coverage of the intervals.
    """
    ready = prepare(tables, floor)
    found = compute(ready, has_floor=floor is not None, seed=seed, level=level)
    applicable = ready.applicable()
    beside = (
        found
        if len(applicable.cases) == len(ready.cases)
        else compute(applicable, has_floor=floor is not None, seed=seed, level=level)
    )
    metrics = {metric.name: metric for metric in found}
    for metric in beside:
        name = f"{metric.name}_applicable"
        metrics[name] = Metric(**{**asdict(metric), "name": name})
    parts = [
        *recall_by_domain(ready.faults, level),
        *by_cause(ready.faults, ready.findings, level),
        *recall_by_severity(ready.faults, level),
    ]
    return metrics | {metric.name: metric for metric in parts}


def _check_pairing(labels: Sequence[Label], responses: Mapping[str, Response]) -> None:
    if not labels:
        raise InputError("must hold at least one case", where="labels", found=0)
    ids = [label.case_id for label in labels]
    twice = sorted({a for a, b in pairwise(ids) if a == b})
    if twice:
        raise HarnessError(f"labels must have each case once, found twice {twice[:5]}")
    for must, odd in (
        ("each label must have a response, none for", set(ids) - set(responses)),
        ("each response must have a label, none for", set(responses) - set(ids)),
    ):
        if odd:
            raise HarnessError(f"{must} {sorted(odd)[:5]} ({len(odd)} in all)")


def _count(frame: pd.DataFrame, buckets: Sequence[str]) -> dict[str, int]:
    found = frame["bucket"].value_counts()
    return {bucket: int(found.get(bucket, 0)) for bucket in buckets}
