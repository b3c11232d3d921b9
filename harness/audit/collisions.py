"""Whether undecidable cases are: can a classifier tell apart what their evidence leaves alike?

For each pair of causes that a way of withholding leaves, runs of the same jobs at the same cost
are told apart by a random forest and by the audit's own linear classifier, both on groups that
were held out. What they see is more than a diagnoser is likely to look at: mean, spread, extremes
and differences between ranks of every column, how often every text occurs, all also as ratios to
the reference run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cases.bundle import RunData
from cases.table_files import to_frame
from cases.tables import to_arrow
from harness.audit.classifier import BOOTSTRAPS, ONE_SIDED, auc, separation
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
    numbers = table.loc[:, table.nunique(dropna=False) > 1].astype(float)
    filled = numbers.fillna(-1.0)
    own = separation(filled, positive, groups, seed)
    assert own is not None
    scores = _forest(filled.to_numpy(), positive, groups, seed)
    linear_high = max(own.auc_high, own.pooled_auc + own.auc_high - own.auc)
    return Collision(
        first=first,
        second=second,
        groups=own.groups,
        forest=auc(scores, positive),
        forest_high=_bound(scores, positive, groups, seed),
        linear=max(own.auc, own.pooled_auc),
        linear_high=linear_high,
        tell=_best_tell(filled, positive),
    )


def _forest(
    x: NDArray[np.float64], positive: NDArray[np.bool_], groups: NDArray[np.str_], seed: int
) -> NDArray[np.float64]:
    """Held-out chance of the second cause."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import GroupKFold, cross_val_predict

    forest = RandomForestClassifier(TREES, min_samples_leaf=LEAF, random_state=seed)
    folds = GroupKFold(FOLDS)
    found = cross_val_predict(forest, x, positive, groups=groups, cv=folds, method="predict_proba")
    return np.asarray(found[:, 1])


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
    found: dict[str, float] = {f"traces of {len(run.traces)}": float(len(run.traces))}
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
