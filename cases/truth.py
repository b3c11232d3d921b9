"""The private half of a case: its label, how it was measured, and how to make it again.

Imported by injectors and by one judging module of harness; never mounted where a diagnoser
runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt, model_validator

from cases.documents import read_record
from cases.schema import CaseId, CauseName, Decoy, Fault, Interval, Record, Split, Verdict


class PairedTrials(Record):
    """Raw samples of one paired study, mean wall seconds per step, in pairs.

    `treated_first[i]` tells which of pair i ran first; the order was drawn at random.
    """

    baseline_s: tuple[float, ...]
    treated_s: tuple[float, ...]
    treated_first: tuple[bool, ...]
    steps_per_trial: PositiveInt

    @model_validator(mode="after")
    def _paired(self) -> PairedTrials:
        lengths = {len(self.baseline_s), len(self.treated_s), len(self.treated_first)}
        if len(lengths) > 1:
            raise ValueError(f"samples must come in pairs, got lengths {sorted(lengths)}")
        if any(value <= 0 for value in self.baseline_s + self.treated_s):
            raise ValueError("samples must be positive seconds")
        return self


class Alone(Record):
    """One of two faults by itself: mean step seconds in the blocks of the joint trials.

    `acceptance_s[i]` was measured in the block of pair i of `acceptance`, `fresh_s[i]` in that
    of pair i of `fresh`.
    """

    cause: CauseName
    acceptance_s: tuple[float, ...]
    fresh_s: tuple[float, ...]


class Ablated(Record):
    """The plain job (treated) against the same job without a suspected cost (baseline)."""

    cause: CauseName
    trials: PairedTrials


class Validation(Record):
    """Why the label was accepted.

    `acceptance` decided; `fresh` (faulty cases only) gave the cost; `ratio` is treated over
    baseline with the bounds that the rule compares with `threshold`. `shipped_ratio` is the
    mean step time of the recording that is shipped over that of its healthy twin (for a twin:
    over its reference run). `alone` has both faults of a case that has two; `ablations` what
    was taken away from a healthy job that is asked about without a reference run.
    """

    rule: Literal[
        "faulty: one-sided 99% low > threshold", "healthy: one-sided 95% high < threshold"
    ]
    threshold: float
    acceptance: PairedTrials
    fresh: PairedTrials | None = None
    ratio: Interval
    shipped_ratio: float
    decision: Literal["faulty", "healthy"]
    alone: tuple[Alone, ...] = ()
    ablations: tuple[Ablated, ...] = ()

    @model_validator(mode="after")
    def _alone_in_the_same_blocks(self) -> Validation:
        pairs = len(self.acceptance.baseline_s), len(self.fresh.baseline_s) if self.fresh else 0
        for part in self.alone:
            if (len(part.acceptance_s), len(part.fresh_s)) != pairs:
                raise ValueError(f"trials of {part.cause} alone must be as many as the pairs")
        return self


class Witness(Record):
    """A query that is true (non-zero) on this case and false (zero or null) on others.

    `false_on` lists the healthy twin and cases of the causes that this one is confused with.
    The query may read `reference.<table>` beside `<table>`.
    """

    sql: str
    says: str
    false_on: tuple[CaseId, ...] = ()


class Truth(Record):
    """labels/<suite>/<case_id>.json."""

    format: str = "evalharness.truth/1.0"
    id: CaseId
    verdict: Verdict
    faults: tuple[Fault, ...] = ()
    decoys: tuple[Decoy, ...] = ()
    candidates: tuple[CauseName, ...] = ()
    missing_signals: tuple[str, ...] = ()
    group: str
    split: Split
    twin: CaseId | None = None
    witness: Witness | None = None
    validation: Validation
    recipe: dict[str, Any] = Field(min_length=1)

    @model_validator(mode="after")
    def _verdict_fits(self) -> Truth:
        if self.verdict == "faulty" and not (self.faults and self.witness):
            raise ValueError("a faulty case must have a fault and a witness")
        if self.verdict == "healthy" and self.faults:
            raise ValueError("a healthy case must have no fault")
        if (self.verdict == "undecidable") != bool(self.candidates and self.missing_signals):
            raise ValueError(
                "an undecidable case, and no other, has candidates and missing_signals"
            )
        return self


def read_truth(labels: Path, case_id: str) -> Truth:
    """Read the label of one case from a labels folder."""
    return read_record(labels / f"{case_id}.json", Truth)
