"""Every metric of one diagnoser, in one list."""

from __future__ import annotations

from scorers.benefit_metrics import net_benefits
from scorers.calibration import calibration
from scorers.detectable import minimum_detectable
from scorers.f1 import f1
from scorers.intervals import LEVEL
from scorers.levels import LEVELS
from scorers.metric import Metric
from scorers.rate_metrics import RATES, rate
from scorers.selective import augrc
from scorers.sum_metrics import STATISTICS, summed
from scorers.tables import Tables

FLOOR = "lost_fraction_error_floor"


def compute(tables: Tables, *, has_floor: bool, seed: int, level: float = LEVEL) -> list[Metric]:
    """Compute every metric over all cases, each with its interval.

    Args:
        tables: The outcomes as `prepared.prepare` gives them.
        has_floor: Whether a median of a train split was given.
        seed: Seed of the bootstrap.
        level: Coverage of the intervals.
    """
    frames = {"cases": tables.cases, "faults": tables.faults, "findings": tables.findings}
    rates = {name: rate(name, rule, frames[rule.table], level) for name, rule in RATES.items()}
    f1s = [f1(f"f1_{x}", rates[f"precision_{x}"], rates[f"recall_{x}"]) for x in LEVELS]
    sums = [
        summed(name, rule, tables.cases, seed, level)
        if name != FLOOR or has_floor
        else Metric.undefined(name, "no median of a train split was given")
        for name, rule in STATISTICS.items()
    ]
    return [
        *rates.values(),
        *f1s,
        *net_benefits(tables.cases, level),
        *sums,
        *calibration(tables.findings, level),
        augrc(tables.cases, level),
        minimum_detectable(tables.faults, level=level),
    ]
