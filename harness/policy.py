"""The gate's policy: what a result must satisfy, as people write it in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, model_validator

from cases.documents import parse_record, read_yaml
from cases.schema import CaseId, Record


class Require(Record):
    """What a result must be before its numbers are looked at."""

    sealed: bool = True
    ranked: bool = True


class Threshold(Record):
    """A limit on one metric.

    By `bound`, only an interval wholly beyond the limit stops, and only one wholly within it
    passes; what lies between is inconclusive. By `estimate`, the point estimate decides. (Not
    named `on`, which YAML 1.1 reads as true.)
    """

    metric: str
    max: float | None = None
    min: float | None = None
    by: Literal["bound", "estimate"] = "bound"

    @model_validator(mode="after")
    def _one_limit(self) -> Threshold:
        if (self.max is None) == (self.min is None):
            raise ValueError(f"the threshold on {self.metric} must have either max or min")
        return self


class BaselineRule(Record):
    """How much worse than a baseline, case by case, a result may be.

    `margin` is the loss that does not matter, in units of the metric; `alpha` bounds the
    two-sided p value by which a result counts as worse. `max_newly_misled` limits the cases on
    which the result is misled and the baseline was not. Cases of `must_not_flip` that the
    baseline got right must stay right.
    """

    metric: Literal["net_benefit_w1_reference"] = "net_benefit_w1_reference"
    margin: PositiveFloat = 0.02
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    max_newly_misled: NonNegativeInt | None = None
    must_not_flip: tuple[CaseId, ...] = ()


class Policy(Record):
    """A policy file. `inconclusive: pass` (the default) stops only what is shown to be bad."""

    format: str = "evalharness.policy/1.0"
    require: Require = Require()
    inconclusive: Literal["pass", "stop"] = "pass"
    thresholds: tuple[Threshold, ...] = ()
    baseline: BaselineRule | None = None

    @model_validator(mode="after")
    def _some_rule(self) -> Policy:
        if not self.thresholds and self.baseline is None:
            raise ValueError("a policy must have thresholds or a baseline, or it stops nothing")
        return self


def read_policy(path: Path) -> Policy:
    """Read a policy file; raises RecordError naming file and field."""
    return parse_record(read_yaml(path), Policy, where=path)
