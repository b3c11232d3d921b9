"""Checking what findings cite, each query in a process that sees one case and no label.

A query runs where diagnosers run and is killed from outside: DuckDB's own time and memory
limits do not hold while it evaluates a join.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from cases.bundle import Suite
from cases.documents import parse_record
from cases.schema import Evidence
from harness import judge
from harness.evidence import (
    EVIDENCE,
    MOST_PER_CASE,
    Checked,
    Reading,
    append_checked,
    read_checked,
    rule,
)
from harness.evidence_jobs import CheckOptions, Job, jobs_of
from harness.results import Answer
from harness.sandbox.worker import CaseRun, Place, Task, Worker
from scorers.evidence import is_true

BEYOND = Reading(
    status="refused", why=f"must be among the first {MOST_PER_CASE} pieces of evidence of a case"
)
TASK = Task({"module": "harness.child.evidence", "function": "read", "search": []})
Progress = Callable[[Checked], None]


def check_evidence(
    folder: Path,
    suite: Suite,
    answers: Mapping[str, Answer],
    options: CheckOptions,
    progress: Progress = lambda line: None,
) -> None:
    """Check every claim of a results folder that was not checked under the same setup before.

    Args:
        folder: Where evidence.jsonl lies or will lie.
        suite: The cases.
        answers: The answer to each case.
        options: Isolation and limits.
        progress: Called for every claim checked now.

    Raises:
        HarnessError: the sandbox does not start.
    """
    (folder / EVIDENCE).touch()
    known = read_checked(folder) or {}
    jobs = [job.without(known) for job in jobs_of(suite, answers, options)]
    if not any(job.open for job in jobs):
        return
    with Worker(TASK, _place(folder, suite, options)) as worker:
        checker = Checker(worker, suite, sealed=options.level == "bwrap" and not worker.reached)
        for job in (job for job in jobs if job.open):
            for line in checker.check(job):
                append_checked(folder, line)
                progress(line)


class Checker:
    """Rules on the claims of one case after the other."""

    def __init__(self, worker: Worker, suite: Suite, *, sealed: bool) -> None:
        self._worker, self._suite, self._sealed = worker, suite, sealed

    def check(self, job: Job) -> Iterator[Checked]:
        """Yield a ruling on each claim of a case."""
        start = time.monotonic()
        here = self._read(job.case, {claim.sql for claim in job.claims.values()}, "run")
        true = {c.sql for c in job.claims.values() if is_true(c, here[c.sql].value)}
        there = self._read_healthy(job, true)
        seconds = (time.monotonic() - start) / max(len(job.claims), 1)
        for key, claim in job.claims.items():
            yield self._line(job, key, claim, here[claim.sql], there.get(claim.sql), seconds)
        for key, claim in job.beyond.items():
            yield self._line(job, key, claim, BEYOND, None, 0.0)

    def _line(
        self,
        job: Job,
        key: str,
        claim: Evidence,
        here: Reading,
        there: Reading | None,
        seconds: float,
    ) -> Checked:
        told = here if here.status != "ok" or there is None else there
        return Checked(
            case=job.case,
            claim=key,
            setup=job.setup,
            ruling=rule(claim, here, job.against, there),
            here=here.value,
            there=there.value if there else None,
            against=job.against,
            why=told.why,
            seconds=seconds,
            sealed=self._sealed,
        )

    def _read_healthy(self, job: Job, queries: set[str]) -> dict[str, Reading]:
        """Run queries over what stands for a healthy job; nothing where nothing does."""
        if job.against == "twin" and job.healthy is not None:
            return self._read(job.healthy, queries, "run")
        return self._read(job.case, queries, "reference") if job.against == "reference" else {}

    def _read(
        self, case: str, queries: set[str], of: Literal["run", "reference"]
    ) -> dict[str, Reading]:
        """Run queries over one run, each in a process of its own."""
        if not queries:
            return {}
        self._suite.verify_case(case)
        ordered = sorted(queries)
        folder = Path(self._suite.case_folder(case))
        runs = self._worker.run_each(folder, [{"sql": sql, "of": of} for sql in ordered])
        return {sql: to_reading(run) for sql, run in zip(ordered, runs, strict=True)}


def to_reading(run: CaseRun) -> Reading:
    """Read what came back from the sandbox; a process that died there has failed."""
    if run.outcome == "ok":
        return parse_record(json.loads(run.answer), Reading, where="evidence")
    if run.outcome in ("timeout", "out_of_memory"):
        return Reading(status=run.outcome, why=f"after {run.seconds:.1f} s")
    return Reading(status="failed", why=run.error.strip()[-500:])


def _place(folder: Path, suite: Suite, options: CheckOptions) -> Place:
    secrets = {
        "labels": [judge.labels_folder(suite.folder, options.labels)],
        "other cases": [suite.folder],
        "earlier results": [folder.resolve()],
    }
    return Place(options.level, options.limits, options.code, secrets)
