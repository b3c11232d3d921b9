"""What is judged: labels, responses, and the part of the taxonomy that judging needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from cases.errors import HarnessError
from cases.schema import Decoy, Diagnosis, Fault, Finding, Topology, Verdict

Outcome = Literal["ok", "unsupported", "error", "timeout", "out_of_memory", "invalid"]


class Tree(Protocol):
    """The tree of causes, as `cases.taxonomy.Taxonomy` offers it."""

    @property
    def causes(self) -> Mapping[str, object]:
        """The leaves by name."""

    @property
    def nodes(self) -> Collection[str]:
        """Every name: domains, mechanisms and causes."""

    def ancestors(self, name: str) -> Sequence[str]:
        """Names above `name`, nearest first."""

    def covers(self, node: str, cause: str) -> bool:
        """Whether `node` is `cause` or stands above it."""


@dataclass(frozen=True)
class Label:
    """What is true of one case, and what of its description the figures are split by.

    `group` is the cluster of the statistics: cases of one workload configuration and
    recording session.
    """

    case_id: str
    group: str
    split: str
    verdict: Verdict
    faults: tuple[Fault, ...]
    decoys: tuple[Decoy, ...]
    candidates: tuple[str, ...]
    missing_signals: tuple[str, ...]
    topology: Topology
    kind: str = "training"
    backend: str = "torch_cpu"
    question: str = "regression"
    duration_ns: int | None = None

    def __post_init__(self) -> None:
        if (self.verdict == "faulty") != bool(self.faults) and self.verdict != "undecidable":
            raise HarnessError(
                f"label {self.case_id}: a faulty case, and no healthy one, must have faults,"
                f" found verdict {self.verdict!r} with {len(self.faults)} faults"
            )


@dataclass(frozen=True)
class Response:
    """What came back for one case: a diagnosis if and only if the outcome is ok.

    `supported` says for each finding whether at least one piece of its evidence held when it
    was checked, None where that could not be decided; None as a whole where nobody has checked.
    """

    case_id: str
    outcome: Outcome
    diagnosis: Diagnosis | None
    seconds: float | None
    supported: tuple[bool | None, ...] | None = None

    def __post_init__(self) -> None:
        if (self.outcome == "ok") != (self.diagnosis is not None):
            raise HarnessError(
                f"response {self.case_id}: a diagnosis must come with outcome ok and with no"
                f" other, found outcome {self.outcome!r}"
            )
        if self.supported is not None and len(self.supported) != len(self.findings):
            raise HarnessError(
                f"response {self.case_id}: supported must say of each of"
                f" {len(self.findings)} findings whether it is, found {len(self.supported)}"
            )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, none where there is no diagnosis."""
        return self.diagnosis.findings if self.diagnosis else ()


def validate(diagnosis: Diagnosis, taxonomy: Tree) -> str | None:
    """Say what makes an answer invalid that its record alone cannot know, or None.

    Every name that a finding blames, `caused_by` included, and every candidate must stand
    in the taxonomy.
    """
    blamed = [f.cause for f in diagnosis.findings]
    blamed += [f.caused_by for f in diagnosis.findings if f.caused_by is not None]
    for name in (*blamed, *diagnosis.candidates):
        if name not in taxonomy.nodes:
            return f"cause must be a name of the taxonomy, found {name!r}"
    return None


def check(response: Response, taxonomy: Tree) -> Response:
    """Return the response, as an `invalid` one if its diagnosis names unknown causes."""
    if response.diagnosis is None or validate(response.diagnosis, taxonomy) is None:
        return response
    return Response(response.case_id, "invalid", None, response.seconds)
