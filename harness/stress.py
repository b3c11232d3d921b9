"""How a diagnoser takes it when recordings get worse: does it fall silent, or does it mislead?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from harness.degrade.asking import Asking
from harness.degrade.effects import EFFECTS
from harness.degrade.grades import DEGRADATIONS
from scorers import Metric, Scores
from scorers.rates import rate_bounds

# What is right about a case: all found, nothing claimed, or an abstention that says why.
RIGHT = ("found", "quiet", "abstained_informed")
SILENT = {
    "abstained": ("abstained", "abstained_blank"),
    "failed": ("failed", "unsupported"),
}
Turn = Literal["misleading", "silence", "inconclusive", "nothing lost"]


@dataclass(frozen=True)
class Grade:
    """One level of one degradation, over the cases that it can do anything to.

    Attributes:
        level: The level, 0 for the cases as they were recorded.
        shown: The level in words.
        rates: recall (cause and place, over faults), misled, abstained, failed (over cases).
        change: By how much it is better than the recordings, by EFFECTS: mostly negative.
        lost: Cases answered rightly as recorded that no longer are, by what became of them:
            misled, abstained, failed, or other (nothing, or not everything, was said).
        misled_share: Share of the lost cases that are misled.
        turns: To misleading or silence, if the interval of that share lies on one side of a half.
    """

    degradation: str
    level: float
    shown: str
    rates: dict[str, Metric]
    change: dict[str, Metric] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    misled_share: Metric | None = None
    turns: Turn = "nothing lost"


@dataclass(frozen=True)
class Strained:
    """One degradation: how many cases of how many groups it touches, and its grades from 0 on."""

    name: str
    about: str
    cases: int
    groups: int
    grades: tuple[Grade, ...]


@dataclass(frozen=True)
class Stress:
    """All degradations of a suite as one diagnoser takes them."""

    diagnoser: str
    suite: str
    suite_digest: str
    seed: int
    cases: int
    groups: int
    degradations: tuple[Strained, ...]
    isolation: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """Return it as a versioned JSON document."""
        return {"format": "evalharness.stress/1.0", **asdict(self)}


def stress(asking: Asking, names: Sequence[str] = (), seed: int = 0) -> Stress:
    """Ask about every grade of every degradation.

    Args:
        asking: The diagnoser and its cases.
        names: Only these of DEGRADATIONS; all by default.
        seed: Of what the degradations draw.
    """
    whole = asking.scores(asking.as_recorded)
    chosen = [name for name in DEGRADATIONS if not names or name in names]
    found = [_strained(asking, name, whole, seed) for name in chosen]
    askings = [_folder(name, level) for name in chosen for level in DEGRADATIONS[name].levels]
    suite = asking.labelled.suite.info
    return Stress(
        diagnoser=asking.spec.name,
        suite=suite.name,
        suite_digest=suite.digest,
        seed=seed,
        cases=len(whole.cases),
        groups=int(whole.cases["group"].nunique()),
        degradations=tuple(found),
        isolation=asking.isolation(askings),
    )


def _folder(name: str, level: float) -> str:
    return f"{name}-{level:g}"


def _strained(asking: Asking, name: str, whole: Scores, seed: int) -> Strained:
    degradation = DEGRADATIONS[name]
    asked = [
        asking.about(_folder(name, level), degradation.at(level, seed))
        for level in degradation.levels
    ]
    touched = frozenset().union(*(one.changed for one in asked))
    before = of_cases(whole, touched)
    after = [of_cases(asking.scores(one.responses), touched) for one in asked]
    worse = [
        grade(name, level, degradation.shown(level), before, scores)
        for level, scores in zip(degradation.levels, after, strict=True)
    ]
    first = Grade(name, 0.0, "as recorded", dict(rates(before)))
    groups = int(before.cases["group"].nunique())
    return Strained(name, degradation.about, len(before.cases), groups, (first, *worse))


def of_cases(scores: Scores, case_ids: frozenset[str]) -> Scores:
    """Return the outcomes of some cases; figures over all cases are left out."""

    def own(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.loc[frame["case_id"].isin(case_ids)].reset_index(drop=True)

    tables = own(scores.cases), own(scores.faults), own(scores.findings)
    return Scores(*tables, scores.confusion.iloc[:0], {})


def grade(name: str, level: float, shown: str, before: Scores, after: Scores) -> Grade:
    """Compare one grade with the same cases as they were recorded."""
    right, now = before.cases["bucket"].isin(RIGHT), after.cases
    lost = now.loc[right & ~now["bucket"].isin(RIGHT)]
    share = _share("misled_share", lost["misled"], lost["group"])
    return Grade(
        name,
        level,
        shown,
        dict(rates(after)),
        {effect: compare(after, before) for effect, compare in EFFECTS.items()},
        dict(became(lost)),
        share,
        turn(share),
    )


def rates(scores: Scores) -> Iterator[tuple[str, Metric]]:
    """Yield the rates of a Grade."""
    cases, faults = scores.cases, scores.faults
    yield "recall", _share("recall", faults["right_cause_and_locus"], faults["group"])
    yield "misled", _share("misled", cases["misled"], cases["group"])
    for name, buckets in SILENT.items():
        yield name, _share(name, cases["bucket"].isin(buckets), cases["group"])


def became(lost: pd.DataFrame) -> Iterator[tuple[str, int]]:
    """Yield how many lost cases there are of each kind; each is of one."""
    yield "misled", int(lost["misled"].sum())
    kinds = {name: int(lost["bucket"].isin(buckets).sum()) for name, buckets in SILENT.items()}
    # An informed abstention can only be lost to another one, which is never misled.
    yield from kinds.items()
    yield "other", len(lost) - int(lost["misled"].sum()) - sum(kinds.values())


def turn(share: Metric) -> Turn:
    """Say what lost cases turn to, by the interval of the share that is misled.

    >>> turn(Metric("misled_share", 0.8, 0.6, 0.9, 20, 9))
    'misleading'
    """
    if share.value is None:
        return "nothing lost"
    if share.low is None or share.high is None:
        return "inconclusive"
    return "misleading" if share.low > 0.5 else "silence" if share.high < 0.5 else "inconclusive"


def _share(name: str, flags: pd.Series[Any], groups: pd.Series[str]) -> Metric:
    if flags.empty:
        return Metric.undefined(name, "no case")
    values = flags.to_numpy(np.float64)
    numbers = np.unique(groups.to_numpy(str), return_inverse=True)[1]
    bounds = rate_bounds(values, numbers)
    return Metric.bounded(name, float(values.mean()), bounds, len(values), int(numbers.max()) + 1)
