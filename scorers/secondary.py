"""What else two diagnosers differ in: a fixed list of metrics, and the domains.

The list is fixed by the labels and never by the answers, so that Holm's correction counts
every look that was taken. Causes are described only: there are too many to test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from scorers.flips import differing, holm, sign_flip_ps
from scorers.intervals import LEVEL, MIN_GROUPS, Array
from scorers.sum_metrics import ratio
from scorers.sums import statistic_bounds
from scorers.tables import Tables

Ruling = Literal["better", "worse", "inconclusive"]
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Compared:
    """A mean that both have over the same rows: of which table and column, of which rows.

    `up` tells whether more of it is better.
    """

    table: Literal["cases", "faults"]
    column: str
    up: bool
    verdict: str | None = None
    domain: str | None = None


METRICS: dict[str, Compared] = {
    "misattribution_rate": Compared("cases", "misled", False, "faulty"),
    "false_alarm_rate": Compared("cases", "misled", False, "healthy"),
    "overclaim_rate": Compared("cases", "misled", False, "undecidable"),
    "recall_cause": Compared("faults", "right_cause", True),
    "recall_cause_and_locus": Compared("faults", "right_cause_and_locus", True),
    "top1": Compared("cases", "top1", True, "faulty"),
    "brier": Compared("cases", "brier", False),
}


@dataclass(frozen=True)
class Difference:
    """One metric of the first diagnoser minus the second's.

    `low` and `high` are a 95 % interval of its own; `p_adjusted` is Holm's over the whole
    list, and `verdict` goes by it. `n` counts cases or faults.
    """

    name: str
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    verdict: Ruling
    n: int
    groups_with_difference: int


def family(faults: pd.DataFrame) -> dict[str, Compared]:
    """Return all that is tested: METRICS, and recall (cause and place) in each domain."""
    domains = {
        f"recall_in_{domain}": Compared("faults", "right_cause_and_locus", True, domain=domain)
        for domain in sorted(faults["domain"].unique())
    }
    return METRICS | domains


def differences(first: Tables, second: Tables, seed: int) -> list[Difference]:
    """Compare all of `family`; what no row of the suite is about is left out.

    Args:
        first: Outcomes of one diagnoser, rows in the order of the labels.
        second: Those of the other on the same labels.
        seed: Seed of the flips and the bootstrap.
    """
    rules = family(first.faults)
    pairs = {name: _pairs(rule, first, second) for name, rule in rules.items()}
    pairs = {name: rows for name, rows in pairs.items() if not rows.empty}
    if not pairs:
        return []
    groups = sorted(first.cases["group"].unique())
    sums = [_sums(rows, groups) for rows in pairs.values()]
    raw = sign_flip_ps(np.column_stack([column[:, 0] for column in sums]), seed)
    counts = [differing(column[:, 0]) for column in sums]
    # What too few groups differ in is tested all the same: it takes its share of the error.
    p_values = [p if c >= MIN_GROUPS else 1.0 for p, c in zip(raw, counts, strict=True)]
    adjusted = holm(p_values)
    return [
        _difference(name, rules[name], pairs[name], sums[i], (raw[i], adjusted[i]), seed)
        for i, name in enumerate(pairs)
    ]


def _pairs(rule: Compared, first: Tables, second: Tables) -> pd.DataFrame:
    one, other = getattr(first, rule.table), getattr(second, rule.table)
    kept = np.ones(len(one), dtype=bool)
    if rule.verdict is not None:
        kept &= (one["verdict"] == rule.verdict).to_numpy(bool)
    if rule.domain is not None:
        kept &= (one["domain"] == rule.domain).to_numpy(bool)
    values = (frame[rule.column].to_numpy(np.float64) for frame in (one, other))
    pairs = dict(zip(("first", "second"), values, strict=True))
    return pd.DataFrame({"group": one["group"], **pairs}).loc[kept]


def _sums(rows: pd.DataFrame, groups: list[str]) -> Array:
    """Per group: summed difference, number of rows."""
    frame = pd.DataFrame({"d": rows["first"] - rows["second"], "n": 1.0})
    by_group = frame.groupby(rows["group"]).sum().reindex(groups, fill_value=0.0)
    return by_group.to_numpy(np.float64)


def _difference(
    name: str,
    rule: Compared,
    rows: pd.DataFrame,
    sums: Array,
    p_values: tuple[float, float],
    seed: int,
) -> Difference:
    own = sums[sums[:, 1] > 0]
    bounds = statistic_bounds(own, ratio, units=own[:, 1:], seed=seed, level=LEVEL)
    count = differing(sums[:, 0])
    tested = count >= MIN_GROUPS
    difference = float(sums[:, 0].sum() / sums[:, 1].sum())
    verdict: Ruling = "inconclusive"
    if tested and p_values[1] < SIGNIFICANCE:
        verdict = "better" if (difference > 0) == rule.up else "worse"
    return Difference(
        name,
        float(rows["first"].mean()),
        float(rows["second"].mean()),
        difference,
        bounds.low,
        bounds.high,
        float(p_values[0]) if tested else None,
        float(p_values[1]) if tested else None,
        verdict,
        len(rows),
        count,
    )
