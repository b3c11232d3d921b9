"""Which claims of a results folder are to be checked, and against what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

from cases.bundle import Suite
from cases.documents import canonical_json
from cases.schema import Evidence
from harness import judge
from harness.evidence import MOST_PER_CASE, Against, Checked, claim_key, claims_of
from harness.results import Answer
from harness.sandbox.digests import named_digest
from harness.sandbox.level import Level
from harness.sandbox.limits import MIB, Limits

VERSION = 1  # raised when a query may get another ruling than before
LIMITS = Limits(timeout_s=30.0, memory_bytes=2048 * MIB, scratch_bytes=64 * MIB)


@dataclass(frozen=True)
class CheckOptions:
    """How evidence is checked.

    Attributes:
        code: Folder with the public code.
        level: Isolation.
        limits: What one query over one run may cost, reading its tables included.
        labels: Folder of the labels, None for the one beside the corpus.
    """

    code: Path
    level: Level
    limits: Limits = field(default_factory=lambda: LIMITS)
    labels: Path | None = None


@dataclass(frozen=True)
class Job:
    """The claims about one case by their keys, and those beyond the most that are looked at.

    `healthy` is the case that stands for a healthy job where claims are held against one.
    """

    case: str
    against: Against
    healthy: str | None
    setup: str
    claims: Mapping[str, Evidence]
    beyond: Mapping[str, Evidence]

    @property
    def open(self) -> bool:
        """Whether there is anything to rule on."""
        return bool(self.claims or self.beyond)

    def without(self, known: Mapping[str, Checked]) -> Job:
        """Return the job without the claims that have a ruling under the same setup."""

        def left(claims: Mapping[str, Evidence]) -> dict[str, Evidence]:
            return {
                key: claim
                for key, claim in claims.items()
                if key not in known or known[key].setup != self.setup
            }

        return replace(self, claims=left(self.claims), beyond=left(self.beyond))


def jobs_of(suite: Suite, answers: Mapping[str, Answer], options: CheckOptions) -> Iterator[Job]:
    """Yield what is claimed about each case, in the order of the answers."""
    healthy = judge.healthy_counterparts(suite.folder, options.labels)
    for case, answer in answers.items():
        claims = list(distinct(answer, suite.info.cases[case]).items())
        if claims:
            against, twin = _counterpart(suite, case, healthy[case])
            setup = _setup(suite, against, twin, options)
            looked_at, beyond = dict(claims[:MOST_PER_CASE]), dict(claims[MOST_PER_CASE:])
            yield Job(case, against, twin, setup, looked_at, beyond)


def distinct(answer: Answer, case_digest: str) -> dict[str, Evidence]:
    """Return the claims of an answer by their keys, in its order."""
    findings = answer.diagnosis.findings if answer.diagnosis else ()
    return {claim_key(case_digest, claim): claim for _, claim in claims_of(findings)}


def _counterpart(suite: Suite, case: str, healthy: str | None) -> tuple[Against, str | None]:
    """Say what claims about a case are held against: its twin, itself, its reference run."""
    if healthy in suite.info.cases:
        return ("itself" if healthy == case else "twin"), healthy
    return ("nothing" if suite.case(case).reference is None else "reference"), None


def _setup(suite: Suite, against: Against, healthy: str | None, options: CheckOptions) -> str:
    """Digest of all that a ruling depends on besides the case and the claim."""
    twin = suite.info.cases[healthy] if healthy else None
    limits = [options.limits.timeout_s, options.limits.memory_bytes]
    tools = [VERSION, metadata.version("duckdb"), options.level]
    return named_digest(canonical_json([tools, limits, against, twin]))
