"""The public records: what a case says about itself and what a diagnoser answers.

All are frozen pydantic models. Units stand in names: `_s _ns _ms _bytes _w _mhz _c`.
Times within signals are int64 nanoseconds since the case's start.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

Probability = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/ @-]*$", max_length=100)]
CauseName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=80)]
CaseId = Annotated[str, Field(pattern=r"^[a-z0-9]{4,40}$")]
Scalar = bool | int | float | str
Verdict = Literal["faulty", "healthy", "undecidable"]
Split = Literal["train", "dev", "public_test"]
Scope = Literal[
    "job", "stage", "host", "rank", "gpu", "link", "op", "worker", "request_class", "segment"
]

SCOPE_FIELDS: dict[Scope, str] = {
    "stage": "stages",
    "host": "hosts",
    "rank": "ranks",
    "gpu": "gpus",
    "link": "links",
    "op": "ops",
    "worker": "workers",
    "request_class": "request_classes",
    "segment": "segment",
}
MAX_ROOTS = 5


class Record(BaseModel):
    """Base of all records: frozen, and strict about fields that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Window(Record):
    """A stretch of time, in nanoseconds since the case's start."""

    start_ns: NonNegativeInt
    end_ns: NonNegativeInt

    @model_validator(mode="after")
    def _ordered(self) -> Window:
        if self.end_ns <= self.start_ns:
            raise ValueError(f"end_ns must be after start_ns {self.start_ns}, got {self.end_ns}")
        return self


class Interval(Record):
    """An estimate with its two-sided bounds."""

    value: float
    low: float
    high: float


class Locus(Record):
    """Where a cause sits: a scope and the names within that scope.

    `job` has no names. Every other scope fills its own field and no other:
    `ranks` (numbers), `hosts`, `gpus` ("host0/gpu1"), `links` and `stages` as the topology
    names them, `ops` (operator or kernel names), `workers` ("rank0/worker1"),
    `request_classes`, `segment` (column -> value of the `jobs` table).
    """

    scope: Scope
    ranks: tuple[NonNegativeInt, ...] = ()
    hosts: tuple[Name, ...] = ()
    stages: tuple[NonNegativeInt, ...] = ()
    gpus: tuple[Name, ...] = ()
    links: tuple[Name, ...] = ()
    ops: tuple[str, ...] = ()
    workers: tuple[Name, ...] = ()
    request_classes: tuple[Name, ...] = ()
    segment: dict[str, str] = {}

    @model_validator(mode="after")
    def _own_field_only(self) -> Locus:
        own = SCOPE_FIELDS.get(self.scope)
        for field in SCOPE_FIELDS.values():
            if bool(getattr(self, field)) != (field == own):
                raise ValueError(
                    f"a locus of scope {self.scope!r} must fill {own or 'no names'} and nothing"
                    f" else, but {field} is {getattr(self, field)!r}"
                )
        return self


JOB = Locus(scope="job")


# --- the case -----------------------------------------------------------------------------


class Workload(Record):
    """The program that ran and its parameters, the same keys in every case of a workload."""

    name: Name
    parameters: dict[str, Scalar] = {}


class RankPlace(Record):
    """Where one rank runs."""

    rank: NonNegativeInt
    host: Name
    gpu: Name | None = None
    stage: NonNegativeInt | None = None


class Link(Record):
    """A network link by name, the ranks at its two ends, and what it is made of."""

    name: Name
    ranks: tuple[NonNegativeInt, ...]
    kind: Name = "ethernet"


class Topology(Record):
    """Hosts, ranks, links and how the job is split over them."""

    ranks: tuple[RankPlace, ...] = Field(min_length=1)
    links: tuple[Link, ...] = ()
    parallelism: dict[str, PositiveInt] = {}

    @model_validator(mode="after")
    def _ranks_count_up(self) -> Topology:
        numbers = [place.rank for place in self.ranks]
        if numbers != list(range(len(numbers))):
            raise ValueError(f"ranks must count up from 0, got {numbers}")
        return self


class Environment(Record):
    """Versions, hardware, allow-listed variables and the job's own configuration."""

    versions: dict[str, str] = {}
    hardware: dict[str, Scalar] = {}
    variables: dict[str, str] = {}
    config: dict[str, Scalar] = {}


class Signals(Record):
    """Which tables the case carries and which it does not."""

    present: tuple[Name, ...]
    absent: tuple[Name, ...] = ()


class Provenance(Record):
    """How the case came about; never when, and never by which scenario.

    Attributes:
        profiler_overhead: Wall time of a profiled step over that of another one of the same
            recording (medians); None where there are no traces, or nobody knows.
    """

    backend: Literal["torch_cpu", "torch_cuda", "simulated", "imported"]
    profiler_overhead: PositiveFloat | None = None


class CaseInfo(Record):
    """case.json: the public description of one case."""

    format: str = "evalharness.case/1.0"
    id: CaseId
    title: str = Field(max_length=200)
    kind: Literal["training", "inference", "fleet"]
    shape: Literal["snapshot", "run"]
    question: Literal["regression", "audit"]
    objective: str | None = None
    workload: Workload
    topology: Topology
    environment: Environment
    signals: Signals
    provenance: Provenance

    @model_validator(mode="after")
    def _audit_states_objective(self) -> CaseInfo:
        if self.question == "audit" and not self.objective:
            raise ValueError("an audit case must state its objective")
        return self


class SuiteInfo(Record):
    """suite.json: what the suite is and the content digests of its cases."""

    format: str = "evalharness.suite/1.0"
    name: Name
    title: str
    taxonomy_version: str
    digest: str
    cases: dict[CaseId, str]
    labels: Literal["public", "private_seed"] = "public"


# --- a label's parts that scoring needs (the labels themselves are in cases.truth) ---------


class Fault(Record):
    """One injected cause, where and when it acted, and what it was measured to cost.

    `lost_fraction` is 1 - healthy/faulty wall time. `acceptable` lists equally right causes,
    `symptoms` causes that are only its consequences, `victims` the ranks that wait because
    of it. Of a `redundancy_group` any one member is a right answer.
    """

    cause: CauseName
    locus: Locus
    windows: tuple[Window, ...] = ()
    lost_fraction: Interval
    acceptable: tuple[CauseName, ...] = ()
    symptoms: tuple[CauseName, ...] = ()
    victims: tuple[NonNegativeInt, ...] = ()
    redundancy_group: str | None = None


class Decoy(Record):
    """Something odd that was made to happen and shown to cost nothing."""

    name: CauseName
    looks_like: tuple[CauseName, ...]
    locus: Locus = JOB


# --- the answer ---------------------------------------------------------------------------


class Evidence(Record):
    """One SELECT over the case's tables, the number it is claimed to give, and what it says."""

    sql: str
    value: float
    tolerance: Annotated[float, Field(ge=0)] = 0.05
    says: str = ""


class RuledOut(Record):
    """A cause that was considered and dismissed, and why."""

    cause: CauseName
    why: str


class Finding(Record):
    """One thing said to be wrong. Only `cause` is required.

    `confidence` is the probability that cause and locus are both right; `lost_fraction` the
    share of wall time the cause is said to cost.
    """

    cause: CauseName
    role: Literal["root", "symptom"] = "root"
    caused_by: CauseName | None = None
    locus: Locus | None = None
    windows: tuple[Window, ...] = ()
    confidence: Probability = 0.5
    lost_fraction: Probability | None = None
    evidence: tuple[Evidence, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    remedy: str | None = None

    @model_validator(mode="after")
    def _symptom_has_root(self) -> Finding:
        if (self.role == "symptom") != (self.caused_by is not None):
            raise ValueError("a symptom, and only a symptom, must name its caused_by")
        return self


class Diagnosis(Record):
    """A diagnoser's whole answer about one case.

    `confidence` is the probability that the whole answer is right.
    """

    verdict: Literal["faulty", "healthy", "abstain"]
    findings: tuple[Finding, ...] = ()
    confidence: Probability = 0.5
    missing_signals: tuple[str, ...] = ()
    candidates: tuple[CauseName, ...] = ()

    @model_validator(mode="after")
    def _findings_iff_faulty(self) -> Diagnosis:
        if bool(self.findings) != (self.verdict == "faulty"):
            raise ValueError(
                f"findings must be given if and only if the verdict is faulty,"
                f" got {len(self.findings)} with verdict {self.verdict!r}"
            )
        roots = sum(finding.role == "root" for finding in self.findings)
        if self.findings and not 1 <= roots <= MAX_ROOTS:
            raise ValueError(f"1 to {MAX_ROOTS} findings must be roots, got {roots}")
        return self


def parse_diagnosis(data: Any) -> tuple[Diagnosis, int]:
    """Validate a raw answer; returns it and how many unknown keys were ignored.

    Raises:
        pydantic.ValidationError: the answer breaks a rule and counts as invalid.

    >>> parse_diagnosis({"verdict": "healthy", "mood": 1, "findings": []})[1]
    1
    """
    return Diagnosis.model_validate(data, extra="ignore"), ignored_keys(data)


ANSWER_PARTS: dict[str, type[Record]] = {
    "findings": Finding,
    "evidence": Evidence,
    "ruled_out": RuledOut,
    "locus": Locus,
    "windows": Window,
}


def ignored_keys(data: Any, model: type[Record] = Diagnosis) -> int:
    """Count the keys of a raw answer that the records do not know."""
    if isinstance(data, list | tuple):
        return sum(ignored_keys(item, model) for item in data)
    if not isinstance(data, dict):
        return 0
    known = model.model_fields
    return sum(
        ignored_keys(value, ANSWER_PARTS[key])
        if key in known and key in ANSWER_PARTS
        else key not in known
        for key, value in data.items()
    )
