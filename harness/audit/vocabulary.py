"""Vocabulary: what a faulty trace names and its healthy twin does not, or the other way round.

Operators and kernels are left out, since a mechanism may change which ones run. Files, functions
and ranges are of the program, which is the same with a fault on or off: a name that only faulty
traces have (`inject_delay`, `slow_loader.py`) would be the answer. Traces recorded with stacks
name every function that ran; without stacks only ranges are compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from cases.case import Case
from harness.judge import Truth

CATEGORIES = ("python_function", "user_annotation", "gpu_user_annotation")
NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")
MIN_CASES = 2
Words = set[tuple[str, str]]


@dataclass(frozen=True)
class OddName:
    """A name that stands on one side only in some pair of a faulty case and its healthy twin.

    Attributes:
        cause: The cause of the faulty cases, several joined by `+`.
        category: The trace's word for what it names.
        name: The name, its numbers as `#`.
        faulty_only: Pairs in which only the faulty trace has it.
        twin_only: Pairs in which only the twin's has it.
        pairs: Pairs of this cause.
        healthy: Healthy cases of the whole suite that have it.
    """

    cause: str
    category: str
    name: str
    faulty_only: int
    twin_only: int
    pairs: int
    healthy: int

    @property
    def telling(self) -> bool:
        """Whether it is in every faulty trace of the cause and in no healthy one at all."""
        return self.faulty_only == self.pairs >= MIN_CASES and not self.healthy


def vocabulary(case: Case) -> Words:
    """Names of files, functions and ranges in a case's traces, with their categories."""
    if not case.trace_ranks:
        return set()
    events = case.trace_events[["category", "name"]].dropna().drop_duplicates()
    kept = events[events["category"].isin(CATEGORIES)]
    pairs = zip(kept["category"], kept["name"], strict=True)
    return {(str(category), NUMBERS.sub("#", str(name))) for category, name in pairs}


def odd_names(words: Mapping[str, Words], truths: Mapping[str, Truth]) -> list[OddName]:
    """Compare each faulty case with its twin; the most telling names first.

    Args:
        words: Case id -> `vocabulary`, empty where no trace was recorded.
        truths: Labels by case id.
    """
    faulty_only: dict[str, Counter[tuple[str, str]]] = {}
    twin_only: dict[str, Counter[tuple[str, str]]] = {}
    pairs: Counter[str] = Counter()
    for case_id, truth in truths.items():
        mine, twins = words.get(case_id), words.get(truth.twin or "")
        if truth.verdict != "faulty" or not mine or not twins:
            continue
        cause = "+".join(fault.cause for fault in truth.faults)
        pairs[cause] += 1
        faulty_only.setdefault(cause, Counter()).update(mine - twins)
        twin_only.setdefault(cause, Counter()).update(twins - mine)
    healthy = Counter(
        word
        for case_id, truth in truths.items()
        if truth.verdict == "healthy"
        for word in words.get(case_id, ())
    )
    found = [
        OddName(cause, *word, faulty_only[cause][word], twin_only[cause][word], n, healthy[word])
        for cause, n in pairs.items()
        for word in {*faulty_only[cause], *twin_only[cause]}
    ]
    return sorted(
        found, key=lambda odd: (not odd.telling, -odd.faulty_only / odd.pairs, odd.cause, odd.name)
    )
