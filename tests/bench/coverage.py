"""How often intervals hold the truth and tests cry wolf: `python -m tests.bench.coverage`.

Suites are made up whose truth is known. Cases of a group share the uniform number that decides
about them with chance sqrt(icc), so that any two of them agree as often as the intraclass
correlation says. Groups have five cases each, or one to eleven.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from scorers.calibration import calibration
from scorers.combined import Part, combined_bounds
from scorers.detectable import minimum_detectable
from scorers.f1 import f1
from scorers.flips import holm, sign_flip_ps
from scorers.intervals import Array, Bounds, Codes
from scorers.metric import PREVALENCE, Metric
from scorers.rates import rate_bounds
from scorers.selective import augrc
from scorers.sum_metrics import precision_at_reference, ratio
from scorers.sums import statistic_bounds

GROUPS = (6, 12, 29, 30, 100)
CORRELATIONS = (0.0, 0.3, 0.6)
Held = Iterator[tuple[str, bool | None]]


class Draw:
    """One made-up suite: groups of cases, and correlated uniform numbers."""

    def __init__(self, groups: int, icc: float, alike: bool, rng: np.random.Generator) -> None:
        sizes = np.full(groups, 5) if alike else rng.integers(1, 12, size=groups)
        self.rng, self.icc, self.count = rng, icc, groups
        self.groups: Codes = np.repeat(np.arange(groups), sizes)
        self.n = len(self.groups)

    def uniform(self) -> Array:
        """Return numbers within 0..1, shape (n,), alike within groups."""
        shared = self.rng.random(self.count)[self.groups]
        own = self.rng.random(self.n)
        return np.where(self.rng.random(self.n) < self.icc**0.5, shared, own)

    def sums(self, *columns: Array) -> Array:
        """Sum each column over the groups, shape (groups, columns)."""
        return np.column_stack([np.bincount(self.groups, column, self.count) for column in columns])

    def frame(self, **columns: object) -> pd.DataFrame:
        """Return a table of the cases, as the metrics read it."""
        return pd.DataFrame({"group": pd.Categorical(self.groups), **columns})


def rates(draw: Draw) -> Held:
    """Rates of 0.05, 0.2 and 0.5, and one that is weighted."""
    u = draw.uniform()
    for rate in (0.05, 0.2, 0.5):
        yield f"rate {rate:g}", holds(rate_bounds(1.0 * (u < rate), draw.groups), rate)
    weights = draw.rng.uniform(0.05, 0.6, draw.n)
    bounds = rate_bounds(1.0 * (u < 0.2), draw.groups, weights=weights)
    yield "misattributed_time", holds(bounds, 0.2)


def ratios(draw: Draw) -> Held:
    """Precision of a random number of findings, and F1 with a recall of one half."""
    u, count = draw.uniform(), draw.rng.integers(0, 4, draw.n)
    right = np.repeat(np.where(draw.rng.random(draw.n) < 0.5, u, draw.uniform()) < 0.3, count)
    groups = np.repeat(draw.groups, count)
    yield "precision", holds(rate_bounds(1.0 * right, groups), 0.3)
    found, false = u < 0.5, u > 0.7
    said = np.concatenate([np.ones(found.sum()), np.zeros(false.sum())])
    where = np.concatenate([draw.groups[found], draw.groups[false]])
    precision = metric(0.625, rate_bounds(said, where))
    recall = metric(0.5, rate_bounds(1.0 * found, draw.groups))
    yield "f1", held(f1("f1", precision, recall), 2 * 0.625 * 0.5 / 1.125)


def benefits(draw: Draw) -> Held:
    """Net benefit of a plain diagnoser and of one that seldom says anything."""
    verdict = draw.rng.choice(3, p=(0.5, 0.3, 0.2), size=draw.n)
    for name, find, err in (("", 0.4, (0.2, 0.1, 0.1)), (" (rare)", 0.2, (0.05, 0.03, 0.2))):
        u = draw.uniform()
        found = 1.0 * (u < find)
        false = 1.0 * (u > 1 - np.array(err)[verdict])
        own = [
            Part(1.0, found * (verdict == 0), draw.groups),
            Part(-1.0, false, draw.groups),
        ]
        truth = 0.5 * find - float(np.dot((0.5, 0.3, 0.2), err))
        yield f"net_benefit{name}", holds(combined_bounds(own, draw.count), truth)
        at = [verdict == k for k in range(3)]
        parts = [Part(0.2, found[at[0]], draw.groups[at[0]])]
        mix = list(PREVALENCE.values())
        parts += [Part(-mix[k], false[at[k]], draw.groups[at[k]]) for k in range(3)]
        truth = 0.2 * find - float(np.dot(mix, err))
        yield f"net_benefit_reference{name}", holds(combined_bounds(parts, draw.count), truth)


def sums(draw: Draw) -> Held:
    """Means over faults and cases, and precision at the reference prevalence."""
    u, ones = draw.uniform(), np.ones(draw.n)
    lost = draw.rng.uniform(0.05, 0.6, draw.n)
    error = np.where(u < 0.5, 0.3 * lost * draw.rng.random(draw.n), lost)
    bounds = statistic_bounds(draw.sums(error, ones), ratio, units=draw.sums(ones))
    yield "lost_fraction_error", holds(bounds, 0.5 * 0.325 * 0.15 + 0.5 * 0.325)
    sure = draw.rng.uniform(0.5, 1, draw.n)
    loss = np.where(u < 0.5, (1 - sure) ** 2, np.where(u < 0.8, 1 + sure**2, 1.0))
    bounds = statistic_bounds(draw.sums(loss, ones), ratio, units=draw.sums(ones))
    yield "brier", holds(bounds, 0.5 / 12 + 0.3 * (1 + 7 / 12) + 0.2)
    verdict = draw.rng.choice(3, p=(0.5, 0.3, 0.2), size=draw.n)
    at = [1.0 * (verdict == k) for k in range(3)]
    true, false = at[0] * (u < 0.4), 1.0 * (u > np.where(verdict == 0, 0.7, 0.8))
    columns = draw.sums(true, *(false * k for k in at), *at)
    bounds = statistic_bounds(columns, precision_at_reference, units=columns[:, 4:])
    expected = 0.2 * 0.4 / (0.2 * 0.4 + 0.2 * 0.3 + 0.7 * 0.2 + 0.1 * 0.2)
    yield "precision_reference", holds(bounds, expected)


# a of the regression with slope 1 on confidences uniform on 0.2..0.95, given CURVE.
CURVE, INTERCEPT = (-0.3, 0.8), -0.36867


def forecasts(draw: Draw) -> Held:
    """Calibration of findings that are too sure of themselves, and silence by confidence."""
    sure = draw.rng.uniform(0.2, 0.95, draw.n)
    odds = np.log(sure / (1 - sure))
    right = draw.uniform() < 1 / (1 + np.exp(-(CURVE[0] + CURVE[1] * odds)))
    rows = draw.frame(confidence=sure, right_cause_and_locus=right)
    found = {metric.name: metric for metric in calibration(rows)}
    yield "calibration_intercept", held(found["calibration_intercept"], INTERCEPT)
    yield "calibration_slope", held(found["calibration_slope"], CURVE[1])
    sure = draw.rng.random(draw.n)
    wrong = draw.uniform() < 0.6 - 0.4 * sure
    bucket = np.where(wrong, "misled", "found")
    cases = draw.frame(answered=True, confidence=sure, bucket=bucket)
    yield "augrc", held(augrc(cases), 1 / 6)


def severities(draw: Draw) -> Held:
    """Minimum detectable cost of 0.15, faults costing between 0.04 and 0.6."""
    cost = np.exp(draw.rng.uniform(np.log(0.04), np.log(0.6), draw.n))
    right = draw.uniform() < 1 / (1 + (0.15 / cost) ** 2)
    rows = draw.frame(lost_fraction=cost, right_cause_and_locus=right)
    yield "minimum_detectable", held(minimum_detectable(rows), 0.15)


def differences(draw: Draw) -> Held:
    """The 90 % interval of a paired difference of 0.1."""
    one, other = draw.uniform(), draw.uniform()
    apart = 1.0 * (one < 0.4) - 1.0 * (other < 0.3)
    ones = np.ones(draw.n)
    bounds = statistic_bounds(draw.sums(apart, ones), ratio, units=draw.sums(ones), level=0.9)
    yield "difference (90 %)", holds(bounds, 0.1)


STUDIES: tuple[Callable[[Draw], Held], ...] = (
    rates,
    ratios,
    benefits,
    sums,
    forecasts,
    severities,
    differences,
)


def metric(value: float, bounds: Bounds) -> Metric:
    """Wrap bounds as a metric."""
    return Metric.bounded("", value, bounds, 1, 1)


def holds(bounds: Bounds, truth: float) -> bool | None:
    """Tell whether bounds hold the truth, None where there are none."""
    if bounds.low is None or bounds.high is None:
        return None
    return bounds.low - 1e-9 <= truth <= bounds.high + 1e-9


def held(found: Metric, truth: float) -> bool | None:
    """Tell the same of a metric."""
    return holds(Bounds(found.low, found.high), truth)


def coverage(groups: int, icc: float, alike: bool, trials: int) -> dict[str, tuple[int, int]]:
    """Return for each interval how often it held the truth, and how often there was one."""
    hits: Counter[str] = Counter()
    tries: Counter[str] = Counter()
    rng = np.random.default_rng([groups, int(100 * icc), alike])
    for _ in range(trials):
        draw = Draw(groups, icc, alike, rng)
        for name, inside in (pair for study in STUDIES for pair in study(draw)):
            if inside is not None:
                hits[name] += inside
                tries[name] += 1
    return {name: (hits[name], tries[name]) for name in tries}


def size(groups: int, icc: float, alike: bool, trials: int, tests: int = 8) -> tuple[float, float]:
    """Return how often two equal diagnosers are told apart: by one test, and by any of Holm's.

    Args:
        groups: Number of groups.
        icc: Intraclass correlation.
        alike: Whether all groups have five cases.
        trials: Number of made-up suites.
        tests: Number of metrics in Holm's family, half of each taken from the one before it.
    """
    rng = np.random.default_rng([groups, int(100 * icc), alike, 1])
    one = several = 0
    for trial in range(trials):
        draw = Draw(groups, icc, alike, rng)
        first, second = draw.uniform(), draw.uniform()
        columns = []
        for _ in range(tests):
            columns.append(1.0 * (first < 0.3) - 1.0 * (second < 0.3))
            again = rng.random(draw.n) < 0.5
            first = np.where(again, draw.uniform(), first)
            second = np.where(again, draw.uniform(), second)
        p_values = sign_flip_ps(draw.sums(*columns), seed=trial)
        one += p_values[0] < 0.05
        several += min(holm(list(p_values))) < 0.05
    return one / trials, several / trials


def main() -> None:
    """Print coverage for each setting, and below it the size of the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--groups", type=int, nargs="*", default=GROUPS)
    chosen = parser.parse_args()
    for groups in chosen.groups:
        for icc in CORRELATIONS:
            for alike in (True, False):
                found = coverage(groups, icc, alike, chosen.trials)
                one, several = size(groups, icc, alike, chosen.trials)
                print(f"{groups} groups, icc {icc:g}, {'of 5' if alike else 'of 1 to 11'}:")
                for name, (hits, tries) in found.items():
                    low = " BELOW 0.93" if hits < 0.93 * tries and "90" not in name else ""
                    print(f"  {name:32} {hits / tries:.3f} of {tries}{low}")
                print(f"  size: one test {one:.3f}, any of eight {several:.3f}", flush=True)


if __name__ == "__main__":
    main()
