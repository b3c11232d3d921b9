"""What a forest sees of a case: its numbers, and which lines of `rules` hold."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from cases.case import Case
from harness.diagnosers.features import Facts, numbers_of
from harness.diagnosers.rules.missing import missing_signals
from harness.diagnosers.rules.order import rules_for
from harness.diagnosers.rules.rule import Rule

# What decides between faulty, healthy and undecidable; a cause's numbers say nothing about that.
OF_VERDICT = ("slowdown", "audit", "serves", "on_gpu", "lacking", "rules")


@dataclass(frozen=True)
class Observed:
    """One case as a forest sees it.

    Attributes:
        facts: Its facts, worked out when they are asked for.
        values: All its numbers by name; `rule.<cause>` and `first.<cause>` are 1 where a rule
            holds, `rules` counts these, `lacking` counts decisive signals that it lacks.
        ranks: One row a rank.
        rules: The rules that hold, in their order.
        missing: Decisive signals that the case lacks.
    """

    facts: Facts
    values: dict[str, float]
    ranks: pd.DataFrame
    rules: tuple[Rule, ...]
    missing: tuple[str, ...]


def observe(case: Case) -> Observed:
    """Work out a case's numbers."""
    return observe_facts(Facts(case))


def observe_facts(facts: Facts) -> Observed:
    """The same of a case whose facts are at hand."""
    numbers = numbers_of(facts)
    rules = tuple(rule for rule in rules_for(facts.case) if rule.when(facts))
    values = numbers.values | {f"rule.{rule.cause}": 1.0 for rule in rules}
    values |= {f"first.{rule.cause}": 1.0 for rule in rules[:1]}
    missing = missing_signals(facts.case)
    values["rules"], values["lacking"] = len(rules), len(missing)
    return Observed(facts, values, numbers.ranks, rules, missing)
