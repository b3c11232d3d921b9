"""The audit: trying to read the answers of a suite off something that should not tell them.

Word leaks and trivia decide; tell-tale columns, slowness, names that only one side of a pair has
and withheld signals are reported, because a person has to judge whether the mechanism or the
recording shows there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cases.bundle import Suite
from cases.taxonomy import Taxonomy
from harness.audit.classifier import Separation
from harness.audit.slowness import SlownessGuess, slowness_guess
from harness.audit.tells import Tell, column_means, find_tells
from harness.audit.trivia import passes, trivia_features, trivia_separation
from harness.audit.vocabulary import OddName, Words, odd_names, vocabulary
from harness.audit.words import WordLeak, word_leaks
from harness.each_case import each
from harness.judge import Truth, load_truths
from harness.step_time import slowdown


@dataclass(frozen=True)
class Withheld:
    """One set of withheld signals, and how many of its cases are undecidable."""

    signals: tuple[str, ...]
    cases: int
    undecidable: int

    @property
    def balanced(self) -> bool:
        """Whether absence gives little away: 30 to 70 % of the cases are undecidable."""
        return 0.3 <= self.undecidable / self.cases <= 0.7


@dataclass(frozen=True)
class Audit:
    """What was tried on a suite and what came of it."""

    words: list[WordLeak]
    trivia: Separation | None
    tells: list[Tell]
    slowness: SlownessGuess | None
    withheld: list[Withheld]
    odd_names: list[OddName]

    @property
    def passed(self) -> bool:
        """Whether neither words nor trivia give the answers away."""
        return not self.words and passes(self.trivia)


def audit_suite(folder: Path, taxonomy: Taxonomy, labels: Path | None = None) -> Audit:
    """Audit a suite; each case is read once."""
    import pandas as pd

    suite, truths = Suite.open(folder), load_truths(folder, labels)
    words: list[WordLeak] = []
    trivia, means, slowdowns, absent = {}, {}, {}, {}
    names: dict[str, Words] = {}
    for seen in each(partial(_see, folder, taxonomy), suite.case_ids):
        words += seen.words
        trivia[seen.case_id] = seen.trivia
        means[seen.case_id] = seen.means
        names[seen.case_id] = seen.names
        absent[seen.case_id] = seen.absent
        if seen.slowdown:
            slowdowns[seen.case_id] = seen.slowdown
    table = pd.DataFrame.from_dict(trivia, orient="index")
    return Audit(
        words=words,
        trivia=trivia_separation(suite, truths, table),
        tells=find_tells(means, truths, taxonomy),
        slowness=slowness_guess(slowdowns, truths),
        withheld=withheld_sets(absent, truths),
        odd_names=odd_names(names, truths),
    )


@dataclass(frozen=True)
class _Seen:
    """What of one case goes into the audit."""

    case_id: str
    words: list[WordLeak]
    trivia: dict[str, object]
    means: dict[str, float]
    names: Words
    absent: tuple[str, ...]
    slowdown: float | None


def _see(folder: Path, taxonomy: Taxonomy, case_id: str) -> _Seen:
    suite = Suite.open(folder)
    case = suite.case(case_id)
    return _Seen(
        case_id=case_id,
        words=word_leaks(case, suite.case_folder(case_id), taxonomy),
        trivia=trivia_features(suite, case),
        means=column_means(case),
        names=vocabulary(case),
        absent=tuple(sorted(case.info.signals.absent)),
        slowdown=slowdown(case),
    )


def withheld_sets(
    absent: Mapping[str, tuple[str, ...]], truths: Mapping[str, Truth]
) -> list[Withheld]:
    """Count the undecidable cases of every set of absent signals that has one."""
    sets: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for case_id, signals in absent.items():
        sets[signals].append(truths[case_id].verdict == "undecidable")
    return [
        Withheld(signals, len(found), sum(found))
        for signals, found in sorted(sets.items())
        if any(found)
    ]
