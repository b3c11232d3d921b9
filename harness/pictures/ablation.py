"""The table behind the bars of an ablation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

ABLATION = "ablation.json"
SHOWN = ("withheld", "alone")


def ablation_table(document: Mapping[str, Any]) -> pd.DataFrame:
    """Return what each signal buys, from ablation.json.

    Returns:
        Columns signal, kind (withheld or alone), effect, cause (empty overall), value, low, high;
        signals in the order of their rank.
    """
    rows = []
    for one in document["signals"]:
        for kind in SHOWN:
            rows += [_row(one["signal"], kind, effect, "", m) for effect, m in one[kind].items()]
        for kind, causes in (("withheld", one["causes"]), ("alone", one["causes_alone"])):
            rows += [_row(one["signal"], kind, "recall", cause, m) for cause, m in causes.items()]
    columns = ["signal", "kind", "effect", "cause", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _row(
    signal: str, kind: str, effect: str, cause: str, metric: Mapping[str, Any]
) -> tuple[Any, ...]:
    return signal, kind, effect, cause, metric["value"], metric["low"], metric["high"]
