"""The private half of a case: its label, how it was measured, and how to make it again.

Imported by injectors and by one judging module of harness; never mounted where a diagnoser
runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

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


class Counterfactual(Record):
    """Why the label of a simulated case holds: the same seeds with and without its faults.

    Attributes:
        seconds: Mean seconds of a step for each seed, by which injections were there: `none`,
            all of them (`0` or `0+1`), and every set between, numbers as in `injections`.
        injections: Causes that were injected, in the order of their numbers; those that
            turned out to cost too little are no faults of the label.
        ratio: All over none, the mean over the seeds with the bounds that decide; with one seed
            the difference is exact and both bounds are the value.
        shipped_ratio: As in `Validation`; the shipped run has a seed of its own.
        ablated: What was taken away from a healthy job that is asked about without a reference
            run: cause -> mean seconds of a step without it, for each seed.
    """

    rule: Literal["simulated: same seeds with and without"]
    seeds: tuple[NonNegativeInt, ...] = Field(min_length=1)
    injections: tuple[CauseName, ...] = ()
    seconds: dict[str, tuple[PositiveFloat, ...]]
    threshold: float
    ratio: Interval
    shipped_ratio: float
    decision: Literal["faulty", "healthy"]
    ablated: dict[CauseName, tuple[PositiveFloat, ...]] = {}

    @model_validator(mode="after")
    def _every_set_has_every_seed(self) -> Counterfactual:
        count = len(self.injections)
        sets = {set_name(i for i in range(count) if bits >> i & 1) for bits in range(2**count)}
        if set(self.seconds) != sets:
            raise ValueError(f"seconds must be given for {sorted(sets)}, got {list(self.seconds)}")
        for name, values in (*self.seconds.items(), *self.ablated.items()):
            if len(values) != len(self.seeds):
                raise ValueError(f"{name} must have {len(self.seeds)} seeds, got {len(values)}")
        return self


class Stated(Record):
    """What whoever imported a case states of it: nothing was measured.

    Attributes:
        source: Who states it, and how it is known.
        decision: The verdict that is stated.
    """

    rule: Literal["imported: stated, not measured"] = "imported: stated, not measured"
    source: str = Field(min_length=1)
    decision: Verdict


class StatedLabel(Record):
    """A label that comes with an imported case, as its owner writes it down."""

    format: str = "evalharness.label/1.0"
    source: str = Field(min_length=1)
    verdict: Verdict
    faults: tuple[Fault, ...] = ()
    decoys: tuple[Decoy, ...] = ()
    candidates: tuple[CauseName, ...] = ()
    missing_signals: tuple[str, ...] = ()
    group: str | None = None
    split: Split = "public_test"


def set_name(numbers: Iterable[int]) -> str:
    """Name a set of injections by their numbers.

    >>> set_name([1, 0]), set_name([])
    ('0+1', 'none')
    """
    return "+".join(str(number) for number in sorted(numbers)) or "none"


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
    validation: Validation | Counterfactual | Stated
    recipe: dict[str, Any] = Field(min_length=1)

    @model_validator(mode="after")
    def _verdict_fits(self) -> Truth:
        shown = self.witness or isinstance(self.validation, Stated)
        if self.verdict == "faulty" and not (self.faults and shown):
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
