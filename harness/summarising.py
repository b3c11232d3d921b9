"""Judging the answers of a results folder: its tables and summary.json."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cases.bundle import Suite, find_suite
from cases.documents import read_json, write_bytes, write_json
from cases.errors import BundleError, InputError
from cases.taxonomy import Taxonomy
from harness import judge
from harness.evidence import read_checked
from harness.evidence_view import checked_responses, evidence_rows, evidence_summary
from harness.floors import score_floors
from harness.llm.transcript import COST
from harness.repeats import finished_repeats, flips
from harness.results import ANSWERS, RUN, Answer, answer_key, latest, read_answers
from scorers import Label, Response, Scores, score

SUMMARY, OUTCOMES = "summary.json", "outcomes.parquet"
FAULTS, FINDINGS = "faults.parquet", "findings.parquet"


@dataclass(frozen=True)
class Labelled:
    """A suite with its labels and floors, read and scored once for all diagnosers."""

    suite: Suite
    labels: list[Label]
    taxonomy: Taxonomy
    labels_folder: Path | None = None

    @classmethod
    def open(cls, name_or_path: str | Path, labels: Path | None = None) -> Labelled:
        """Open a suite by name or path and check that labels and taxonomy are those it names.

        Raises:
            BundleError: the suite's digest is not that of its parts.
        """
        suite, taxonomy = Suite.open(find_suite(name_or_path)), Taxonomy.load()
        digest = judge.labelled_digest(suite, taxonomy.digest, labels)
        if digest != suite.info.digest:
            must = f"must be the digest of its cases, labels and taxonomy ({digest})"
            raise BundleError(must, where=suite.folder / "suite.json", found=suite.info.digest)
        return cls(suite, judge.load_labels(suite.folder, labels), taxonomy, labels)

    @cached_property
    def floors(self) -> dict[str, dict[str, float | None]]:
        """Metrics of the floors."""
        return score_floors(self.suite, self.labels, self.score)

    def score(self, responses: Mapping[str, Response]) -> Scores:
        """Judge responses, one for each case of the suite."""
        train = [
            fault.lost_fraction.value
            for label in self.labels
            if label.split == "train"
            for fault in label.faults
        ]
        median = statistics.median(train) if train else None
        return score(self.labels, responses, self.taxonomy, train_median_lost_fraction=median)


def read_run(folder: Path) -> dict[str, Any]:
    """Read run.json of a results folder."""
    document = read_json(folder / RUN)
    if not isinstance(document, dict) or "key" not in document:
        raise InputError("must be an object with a key", where=folder / RUN, found=document)
    return document


def answers_of(path: Path, suite: Suite) -> dict[str, Answer]:
    """Return the answer to each case of `suite` from a results folder or an answers.jsonl.

    Of a folder only answers under its run's key count; of a file alone each case's last one.

    Raises:
        InputError: a case has no answer.
    """
    if path.is_dir():
        run = read_run(path)["key"]
        keys = {case: answer_key(run, digest) for case, digest in suite.info.cases.items()}
        found = latest(read_answers(path / ANSWERS), keys)
    else:
        if not path.is_file():
            raise InputError("must be a results folder or an answers.jsonl", where=path)
        found = {answer.case: answer for answer in read_answers(path)}
    missing = sorted(set(suite.info.cases) - set(found))
    if missing:
        must = f"must answer every case of {suite.info.name} ({len(missing)} have no answer)"
        raise InputError(must, where=path, found=missing[:5])
    return {case: found[case] for case in suite.case_ids}


def summarise(folder: Path, labelled: Labelled) -> dict[str, Any]:
    """Judge a results folder and write its tables and summary.json; returns the latter.

    The tables are outcomes.parquet, a row a case, faults.parquet and findings.parquet. Findings
    are held to their evidence if all of it has been checked (evidence.jsonl).
    """
    run, answers = read_run(folder), answers_of(folder, labelled.suite)
    info, checked = labelled.suite.info, read_checked(folder)
    scores = labelled.score(checked_responses(answers, info.cases, checked))
    document = {
        "format": "evalharness.summary/1.0",
        "suite": info.name,
        "suite_digest": info.digest,
        "diagnoser": run["diagnoser"],
        "diagnoser_digest": run["digests"]["code"],
        "isolation": {name: run["isolation"][name] for name in ("level", "sealed", "note")},
        "ranked": not run.get("retried") and run["isolation"]["level"] != "oracle",
        "labels": info.labels,
        **scores.summary(),
        "outcomes": _counted([answer.outcome for answer in answers.values()]),
        "ignored_keys": sum(answer.ignored_keys for answer in answers.values()),
        "floors": labelled.floors,
        "timing": timing(list(answers.values())),
    }
    document |= _repeated(folder, labelled, document["metrics"], (scores, responses_of(answers)))
    if checked is not None:
        rows = list(evidence_rows(answers, info.cases, checked))
        document["evidence"] = evidence_summary(rows, checked)
    if (folder / COST).is_file():
        document["cost"] = read_json(folder / COST)
    write_bytes(folder / OUTCOMES, _parquet(scores, answers))
    write_bytes(folder / FAULTS, scores.faults.to_parquet(index=False))
    write_bytes(folder / FINDINGS, scores.findings.to_parquet(index=False))
    write_json(folder / SUMMARY, document)
    return document


def _repeated(
    folder: Path,
    labelled: Labelled,
    metrics: dict[str, Any],
    first: tuple[Scores, Mapping[str, Response]],
) -> dict[str, Any]:
    """Judge the repetitions of a run, if there are any: adds flip rates to its metrics."""
    folders = finished_repeats(folder, read_run(folder)["key"])
    if not folders:
        return {}
    again = [responses_of(answers_of(other, labelled.suite)) for other in folders]
    scores = [first[0], *(labelled.score(responses) for responses in again)]
    found = flips(scores, [first[1], *again])
    rates = {name: asdict(metric) for name, metric in found.pop("metrics").items()}
    plain = {name: {k: v for k, v in rate.items() if k != "name"} for name, rate in rates.items()}
    return {"metrics": metrics | plain, "repeats": found}


def responses_of(answers: Mapping[str, Answer]) -> dict[str, Response]:
    """Return what the scorers judge, by case."""
    return {case: answer.response() for case, answer in answers.items()}


def timing(answers: Sequence[Answer]) -> dict[str, float | None]:
    """Return medians over the cases that were run; None where none was."""
    medians: dict[str, float | None] = {}
    for name in ("seconds", "cpu_s", "peak_memory_bytes"):
        found = [getattr(answer, name) for answer in answers]
        known = [value for value in found if value is not None]
        medians[f"{name}_median"] = statistics.median(known) if known else None
    return medians


def _counted(names: Sequence[str]) -> dict[str, int]:
    return {name: names.count(name) for name in sorted(set(names))}


def _parquet(scores: Scores, answers: Mapping[str, Answer]) -> bytes:
    """One row per case, with what the run itself measured beside what was judged."""
    frame = scores.cases.assign(
        **{
            name: [getattr(answers[case], name) for case in scores.cases["case_id"]]
            for name in ("seconds", "cpu_s", "peak_memory_bytes")
        }
    )
    content: bytes = frame.to_parquet(index=False)
    return content
