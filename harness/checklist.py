"""The list of checks that a suite goes through, each with where it does not hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Check:
    """One rule: how often it was looked at, and where it does not hold."""

    name: str
    about: str
    looked_at: int = 0
    failures: list[str] = field(default_factory=list)


ABOUT = {
    "digest": "the case's content is what suite.json states",
    "suite_digest": "cases, labels and taxonomy are what suite.json states",
    "label_rule": "the raw samples decide as the label does",
    "cost": "the fresh samples give the stated cost",
    "joint": "each of two faults costs time, as the trials of each alone and of both tell",
    "headroom": "a healthy audit case was not made faster by any ablation, of which it has one",
    "shipped": "the shipped recording is as slow as the label says",
    "taxonomy": "every cause named is a cause of the taxonomy",
    "locus": "the place exists in the topology",
    "windows": "the fault acts within the recording",
    "growth": "no counter shrank between two samples, in the case and its reference run",
    "witness": "the query is true on its own case",
    "witness_false": "the query is false on the twin and on confused causes",
    "twin": "the healthy twin exists in the same group",
    "split": "a group lies in one split",
    "withheld": "what would decide an undecidable case is absent",
}


class Checklist:
    """The checks of one suite, filled in as its cases are read."""

    def __init__(self) -> None:
        self._checks = {name: Check(name, about) for name, about in ABOUT.items()}

    def add(self, name: str, where: str, problems: Iterable[str]) -> None:
        """Count one look at a rule and note what does not hold."""
        check = self._checks[name]
        check.looked_at += 1
        check.failures += [f"{where}: {problem}" for problem in problems]

    def extend(self, part: Checklist) -> None:
        """Take over what another list has looked at."""
        for check in part.checks:
            own = self._checks[check.name]
            own.looked_at += check.looked_at
            own.failures += check.failures

    @property
    def checks(self) -> list[Check]:
        """All checks in a fixed order."""
        return list(self._checks.values())
