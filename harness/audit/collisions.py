"""Whether undecidable cases are: can a classifier tell apart what their evidence leaves alike?

For each pair of causes that a way of withholding leaves, runs of the same jobs at the same cost
are told apart by a random forest and by ridge regression on ranks, both on groups that were held
out. A diagnoser gets one case and not its rival, so an AUC is over pairs of all groups: of two runs
of one job, matched to 0.1 %, one may always be the slower by less than anybody could know.

What classifiers see is more than a diagnoser is likely to look at: mean, spread, extremes and
differences between ranks of every column, how often every text occurs, how often and how long each
operator and kernel of the traces ran, all also as ratios to the reference run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cases.bundle import RunData
from cases.kineto import parse_trace
from cases.table_files import to_frame
from cases.tables import to_arrow
from harness.audit.classifier import BOOTSTRAPS, ONE_SIDED, RIDGE, Floats, auc, design
from harness.audit.tells import TIMES
from injectors.sim.collisions import Seen

LIMIT = 0.65  # what the upper bound of an undecidable pair's AUC must stay below
FOLDS, TREES, LEAF = 5, 200, 3
NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Collision:
    """How well two causes are told apart.

    Attributes:
        first, second: The causes.
        groups: Jobs in which both were run.
        forest, forest_high: AUC of the random forest, and its one-sided 95 % upper bound.
        linear, linear_high: The same of the linear classifier.
        tell: The feature that tells most by itself, with its AUC (0.5 to 1).
    """

    first: str
    second: str
    groups: int
    forest: float
    forest_high: float
    linear: float
    linear_high: float
    tell: tuple[str, float]

    @property
    def collides(self) -> bool:
        """Whether neither classifier tells them apart."""
        return max(self.forest_high, self.linear_high) <= LIMIT


def collisions(seen: Sequence[Seen], seed: int = 0) -> list[Collision]:
    """Try to tell every pair of causes apart, in the groups that have both."""
    table = pd.DataFrame([features(one) for one in seen])
    causes = np.array([one.cause for one in seen])
    groups = np.array([one.group for one in seen])
    found = []
    for first, second in combinations(dict.fromkeys(causes), 2):
        both = sorted(set(groups[causes == first]) & set(groups[causes == second]))
        chosen = np.isin(causes, [first, second]) & np.isin(groups, both)
        if len(both) >= FOLDS:
            of = table[chosen].reset_index(drop=True)
            found.append(
                _compare(first, second, of, causes[chosen] == second, groups[chosen], seed)
            )
    return found


def _compare(
    first: str,
    second: str,
    table: pd.DataFrame,
    positive: NDArray[np.bool_],
    groups: NDArray[np.str_],
    seed: int,
) -> Collision:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import RidgeClassifier

    numbers = table.loc[:, table.nunique(dropna=False) > 1].astype(float)
    filled = numbers.fillna(-1.0)
    forest = RandomForestClassifier(TREES, min_samples_leaf=LEAF, random_state=seed)
    chances = _held_out(forest, filled.to_numpy(), positive, groups, "predict_proba")[:, 1]
    ranks = design(filled)
    linear = RidgeClassifier(alpha=RIDGE * ranks.shape[1])
    sides = _held_out(linear, ranks, positive, groups, "decision_function")
    return Collision(
        first=first,
        second=second,
        groups=len(np.unique(groups)),
        forest=auc(chances, positive),
        forest_high=_bound(chances, positive, groups, seed),
        linear=auc(sides, positive),
        linear_high=_bound(sides, positive, groups, seed),
        tell=_best_tell(filled, positive),
    )


def _held_out(
    model: Any, x: Floats, positive: NDArray[np.bool_], groups: NDArray[np.str_], method: str
) -> Floats:
    """What a model says of cases whose groups it never saw."""
    from sklearn.model_selection import GroupKFold, cross_val_predict

    folds = GroupKFold(FOLDS)
    found = cross_val_predict(model, x, positive, groups=groups, cv=folds, method=method)
    return np.asarray(found)


def _bound(
    scores: NDArray[np.float64], positive: NDArray[np.bool_], groups: NDArray[np.str_], seed: int
) -> float:
    """One-sided 95 % upper bound of the AUC, bootstrap over groups."""
    rng = np.random.default_rng(seed)
    rows = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    found = []
    for _ in range(BOOTSTRAPS):
        drawn = np.concatenate([rows[i] for i in rng.integers(0, len(rows), len(rows))])
        found.append(auc(scores[drawn], positive[drawn]))
    return float(np.quantile(found, ONE_SIDED))


def _best_tell(table: pd.DataFrame, positive: NDArray[np.bool_]) -> tuple[str, float]:
    found = {
        str(name): abs(auc(column.to_numpy(), positive) - 0.5) for name, column in table.items()
    }
    far, name = max((far, name) for name, far in found.items())
    return name, 0.5 + far


def features(seen: Seen) -> dict[str, float]:
    """Everything about one case that a classifier may use."""
    mine, before = _described(seen.run), _described(seen.reference)
    ratios = {
        f"{name} / reference": value / before[name]
        for name, value in mine.items()
        if before.get(name)
    }
    return {**mine, **ratios}


def _described(run: RunData) -> dict[str, float]:
    found = {f"traces of {len(run.traces)}": float(len(run.traces)), **_of_traces(run.traces)}
    for name, frame in run.tables.items():
        table = to_frame(to_arrow(name, frame))
        found[f"{name} rows"] = float(len(table))
        for column in map(str, table.columns):
            key = f"{name}.{column}"
            if pd.api.types.is_numeric_dtype(table[column].dtype):
                found |= _of_numbers(key, table, str(column))
            else:
                found |= _of_texts(key, table[column])
    return found


def _of_traces(traces: Mapping[int, bytes]) -> dict[str, float]:
    """How often each thing ran, how long on average and in all, over all traced ranks."""
    if not traces:
        return {}
    events = pd.concat([parse_trace(raw).events for raw in traces.values()], ignore_index=True)
    kinds = events["name"].astype(str).str.replace(NUMBER, "#", regex=True).str[:60]
    by = events["duration_ns"].astype(float).groupby(events["category"].astype(str) + " " + kinds)
    return {
        f"trace {kind} {what}": float(value)
        for what, column in by.agg(["count", "mean", "sum"]).items()
        for kind, value in column.items()
    }


def _of_numbers(key: str, table: pd.DataFrame, column: str) -> dict[str, float]:
    values = table[column].astype("Float64").dropna().astype(float)
    if column in TIMES and len(values):
        values = values.diff().dropna()  # when a recording began says nothing
    if values.empty:
        return {}
    found = {
        f"{key} mean": values.mean(),
        f"{key} spread": values.std(ddof=0),
        f"{key} least": values.min(),
        f"{key} most": values.max(),
        f"{key} count": float(len(values)),
    }
    by = next((name for name in ("rank", "host") if name in table and name != column), None)
    if by is not None:
        means = values.groupby(table.loc[values.index, by]).mean()
        found[f"{key} between {by}s"] = means.std(ddof=0)
        found[f"{key} highest {by}"] = means.max() / means.mean() if means.mean() else 0.0
        found[f"{key} lowest {by}"] = means.min() / means.mean() if means.mean() else 0.0
    return {name: float(value) for name, value in found.items()}


def _of_texts(key: str, texts: pd.Series[str]) -> Mapping[str, float]:
    kinds = texts.dropna().astype(str).str.replace(NUMBER, "#", regex=True)
    return {f"{key} {str(kind)[:60]}": float(n) for kind, n in kinds.value_counts().items()}
