"""The gate's policy: what a result must satisfy, as people write it in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, model_validator

from cases.documents import parse_record, read_yaml
from cases.schema import CaseId, CauseName, Record

Part = Literal["train", "dev", "public_test", "all"]
Band = Literal["slight", "moderate", "severe", "crippling"]
Benefit = Literal[
    "net_benefit_w0.5_reference",
    "net_benefit_w1_reference",
    "net_benefit_w2_reference",
    "net_benefit_w5_reference",
]
Alpha = Annotated[float, Field(gt=0, lt=0.5)]


class Require(Record):
    """What a result must be before its numbers are looked at."""

    sealed: bool = True
    ranked: bool = True


class Threshold(Record):
    """A limit on one metric, over all cases of a split or over those with certain faults.

    By `bound`, only a bound wholly beyond the limit stops, and only one wholly within it passes;
    what lies between is inconclusive. By `estimate`, the point estimate decides. (Not named `on`,
    which YAML 1.1 reads as true.)

    `cause`, `domain` and `severity` keep the cases that have such a fault, and of their faults
    only those. `split` is the policy's where it is left out.
    """

    metric: str
    max: float | None = None
    min: float | None = None
    by: Literal["bound", "estimate"] = "bound"
    split: Part | None = None
    domain: CauseName | None = None
    cause: CauseName | None = None
    severity: Band | None = None

    @model_validator(mode="after")
    def _one_limit(self) -> Threshold:
        if (self.max is None) == (self.min is None):
            raise ValueError(f"the threshold on {self.metric} must have either max or min")
        return self

    @property
    def limit(self) -> float:
        """The limit, whichever side it is on."""
        limit = self.min if self.max is None else self.max
        assert limit is not None
        return limit


class BaselineRule(Record):
    """How much worse than a baseline, case by case, a result may be.

    `margin` is the loss that does not matter, in units of the metric; `alpha` bounds the chance
    that a result which loses the margin is taken for one that does not. `max_newly_misled` limits
    the cases on which the result is misled and the baseline was not. Cases of `must_not_flip`
    that the baseline got right must stay right.
    """

    metric: Benefit = "net_benefit_w1_reference"
    margin: PositiveFloat = 0.02
    alpha: Alpha = 0.05
    max_newly_misled: NonNegativeInt | None = None
    must_not_flip: tuple[CaseId, ...] = ()


class Policy(Record):
    """A policy file.

    `split` says which cases are looked at. `alpha` bounds the chance that the gate stops a result
    that keeps every rule. `inconclusive: pass` (the default) stops only what is shown to be bad.
    """

    format: str = "evalharness.policy/1.1"
    require: Require = Require()
    split: Part = "dev"
    alpha: Alpha = 0.05
    inconclusive: Literal["pass", "stop"] = "pass"
    thresholds: tuple[Threshold, ...] = ()
    baseline: BaselineRule | None = None

    @model_validator(mode="after")
    def _some_rule(self) -> Policy:
        if not self.thresholds and self.baseline is None:
            raise ValueError("a policy must have thresholds or a baseline, or it stops nothing")
        twice = [rule for rule in self.thresholds if self.thresholds.count(rule) > 1]
        if twice:
            raise ValueError(f"a policy must state a rule once, got {twice[0].metric} twice")
        return self

    @property
    def splits(self) -> set[Part]:
        """The splits that some rule looks at."""
        whole = {self.split} if self.baseline or not self.thresholds else set()
        return whole | {rule.split or self.split for rule in self.thresholds}


def read_policy(path: Path) -> Policy:
    """Read a policy file; raises RecordError naming file and field."""
    return parse_record(read_yaml(path), Policy, where=path)
