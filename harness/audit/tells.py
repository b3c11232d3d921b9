"""Tell-tale columns: one number that gives a cause away although no mechanism says it should.

The classic one is a throttle flag that is set if and only if the fault was injected. Such a
column is flagged unless the taxonomy counts it among the cause's decisive signals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from cases.case import Case
from cases.tables import TABLES
from cases.taxonomy import Taxonomy
from harness.judge import Truth

MIN_CASES = 2
TIMES = {"time_ns", "start_ns", "arrival_ns", "created_ns"}


@dataclass(frozen=True)
class Tell:
    """A depth-one stump that tells a cause perfectly from all other cases.

    Attributes:
        cause: The cause that it tells.
        column: `table.column`, or `table.column / reference`.
        kind: bit where zero against non-zero is enough, threshold otherwise.
        decisive: Whether the taxonomy counts the column among the cause's decisive signals.
        cases: Cases of the cause in which the column was measured.
        others: Cases without the cause in which it was measured.
    """

    cause: str
    column: str
    kind: Literal["bit", "threshold"]
    decisive: bool
    cases: int
    others: int

    @property
    def flagged(self) -> bool:
        """Whether this is a leak to look at rather than the mechanism itself."""
        return self.kind == "bit" and not self.decisive


def column_means(case: Case) -> dict[str, float]:
    """Mean of every measured number of a case, and its ratio to the reference run's."""
    means: dict[str, float] = {}
    for name, table in TABLES.items():
        numbers = [
            column
            for column, (kind, _) in table.columns.items()
            if kind != "text" and column not in TIMES and column not in table.order
        ]
        mine = getattr(case, name)[numbers].astype(float).mean().dropna()
        means |= {f"{name}.{column}": float(value) for column, value in mine.items()}
        if case.reference:
            before = getattr(case.reference, name)[numbers].astype(float).mean()
            ratios = (mine / before[mine.index]).replace([np.inf, -np.inf], np.nan).dropna()
            means |= {f"{name}.{key} / reference": float(value) for key, value in ratios.items()}
    return means


def find_tells(
    means: Mapping[str, Mapping[str, float]], truths: Mapping[str, Truth], taxonomy: Taxonomy
) -> list[Tell]:
    """Find the stumps that tell one cause perfectly; causes with a single case are left out.

    Args:
        means: Case id -> `column_means`.
        truths: Labels by case id; undecidable cases are left out.
        taxonomy: Knows the decisive signals.
    """
    judged = [case_id for case_id in means if truths[case_id].verdict != "undecidable"]
    table = pd.DataFrame.from_dict({case_id: means[case_id] for case_id in judged}, orient="index")
    causes = {c: {fault.cause for fault in truths[c].faults} for c in judged}
    tells = []
    for cause in sorted(set().union(*causes.values())):
        positive = pd.Series({case_id: cause in causes[case_id] for case_id in judged})
        decisive = (
            set(taxonomy.causes[cause].decisive_signals) if cause in taxonomy.causes else set()
        )
        for column in table:
            values = table[column].dropna()
            inside, outside = values[positive[values.index]], values[~positive[values.index]]
            kind = _perfect(inside.to_numpy(), outside.to_numpy())
            if kind and len(inside) >= MIN_CASES:
                plain = str(column).removesuffix(" / reference")
                tells.append(
                    Tell(cause, str(column), kind, plain in decisive, len(inside), len(outside))
                )
    return tells


def _perfect(inside: np.ndarray, outside: np.ndarray) -> Literal["bit", "threshold"] | None:
    if not len(inside) or not len(outside):
        return None
    if len({*(inside != 0)}) == len({*(outside != 0)}) == 1 and (inside[0] != 0) != (
        outside[0] != 0
    ):
        return "bit"
    apart = inside.min() > outside.max() or inside.max() < outside.min()
    return "threshold" if apart else None
