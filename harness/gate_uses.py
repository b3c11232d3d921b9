"""A log of gates that looked at the public test split: each look makes it less of a test."""

from __future__ import annotations

import time
from pathlib import Path

from cases.schema import Record
from harness.results import append_line, read_lines
from harness.ruling import GateReport, Verdict
from harness.store import data_folder


class PublicTestUse(Record):
    """One gate that looked at the public test split of a suite."""

    format: str = "evalharness.public_test_use/1.0"
    time_s: int
    suite: str
    suite_digest: str
    diagnoser: str
    diagnoser_digest: str
    policy: str
    verdict: Verdict


def log_path() -> Path:
    """Return where the log lies, in the user's data folder."""
    return data_folder() / "public_test_uses.jsonl"


def log_use(report: GateReport, diagnoser_digest: str, policy: Path) -> int:
    """Add one use to the log; returns how many there are of this suite, this one included.

    Raises:
        OSError: the log cannot be written.
    """
    path = log_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    use = PublicTestUse(
        time_s=int(time.time()),
        suite=report.suite,
        suite_digest=report.suite_digest,
        diagnoser=report.result,
        diagnoser_digest=diagnoser_digest,
        policy=str(policy.absolute()),
        verdict=report.verdict,
    )
    append_line(path, use, use.format)
    return sum(line.suite == report.suite for line in read_lines(path, PublicTestUse))
