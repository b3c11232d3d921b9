"""The table behind net benefit over w: the diagnoser's figures and those of the floors."""

from __future__ import annotations

import pandas as pd

from harness.stored import Metric, Summary
from scorers.benefit import NAMES, WEIGHTS

MIXES = {"reference": "_reference", "own": ""}
ABSENT = Metric()


def net_benefit_table(summary: Summary) -> pd.DataFrame:
    """Return net benefit at each weight of a false finding, in both mixes of cases.

    Returns:
        Columns diagnoser, floor (whether it is one), mix, w, value, low, high; what is undefined
        is left out.
    """
    rows = []
    for mix, suffix in MIXES.items():
        for weight, name in zip(WEIGHTS, NAMES, strict=True):
            metric = f"net_benefit_{name}{suffix}"
            own = summary.metrics.get(metric, ABSENT)
            rows.append((summary.diagnoser, False, mix, weight, own.value, own.low, own.high))
            rows += [
                (floor, True, mix, weight, values.get(metric), None, None)
                for floor, values in summary.floors.items()
            ]
    columns = ["diagnoser", "floor", "mix", "w", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns).dropna(subset="value").reset_index(drop=True)
