"""The table behind the curves of accuracy against degradation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

STRESS = "stress.json"


def stress_table(document: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rates at each level of each degradation, from stress.json.

    Returns:
        Columns degradation, cases, level, shown, rate, value, low, high, turns; level 0 is as
        recorded.
    """
    rows = [
        (
            one["name"],
            one["cases"],
            grade["level"],
            grade["shown"],
            name,
            metric["value"],
            metric["low"],
            metric["high"],
            grade["turns"],
        )
        for one in document["degradations"]
        for grade in one["grades"]
        for name, metric in grade["rates"].items()
    ]
    columns = ["degradation", "cases", "level", "shown", "rate", "value", "low", "high", "turns"]
    return pd.DataFrame(rows, columns=columns)
