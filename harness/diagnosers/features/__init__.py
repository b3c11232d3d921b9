"""Numbers of a case by documented formulas: what `forest` is trained on.

    features = extract(case)
    features.values["clock.min"]     # one number of the case
    features.ranks                   # one row a rank

Every metric of `metrics.METRICS` is measured for each rank here and in the reference run, and a
case's numbers say what became of it: `.median`, `.max` and `.min` over ranks of its change, `.now`
(median) and `.spread` (greatest less median) of its value. Traces, logs and servers add numbers of
the whole job. What cannot be known is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from cases.case import Case
from cases.tables import SIGNALS
from harness.diagnosers.features.compare import Compared
from harness.diagnosers.features.facts import Facts
from harness.diagnosers.features.numbers import of_ranks

FEATURE_VERSION = "1"  # changes whenever a number of a case, or what `rules` makes of it, may


@dataclass(frozen=True)
class Features:
    """Numbers of a case: `values` of the job by name, and what they were reduced from."""

    values: dict[str, float]
    compared: Compared

    @property
    def ranks(self) -> pd.DataFrame:
        """One row a rank: each metric's change, and how it differs from other ranks'."""
        return of_ranks(self.compared)


def extract(case: Case) -> Features:
    """Work out all numbers of a training or inference case."""
    return numbers_of(Facts(case))


def numbers_of(facts: Facts) -> Features:
    """The same of a case whose facts are at hand."""
    present = {f"has.{signal}": float(facts.case.has(signal)) for signal in SIGNALS}
    return Features(facts.all | present, facts.compared)


__all__ = ["FEATURE_VERSION", "Facts", "Features", "extract", "numbers_of"]
