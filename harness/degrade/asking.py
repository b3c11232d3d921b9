"""Asking one diagnoser about degraded copies, as isolated and limited as any run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cases.bundle import Suite
from cases.digest import document_digest
from cases.schema import Diagnosis
from harness.degrade.copies import CaseCopy
from harness.degrade.copying import copy_digest, read_copy, write_copy
from harness.judge import labels_folder
from harness.results import ANSWERS, RUN
from harness.running import Progress, RunOptions, results_folder, run_diagnoser
from harness.specs import DiagnoserSpec
from harness.summarising import Labelled, answers_of, read_run, responses_of
from scorers import Response, Scores, score

FOLDER = "degraded"
AS_RECORDED = "as_recorded"
Bar = Callable[[str, int], AbstractContextManager[Progress]]
Change = Callable[[CaseCopy], CaseCopy]


@dataclass(frozen=True)
class Asked:
    """Answers about all chosen cases, and which of these were degraded."""

    responses: Mapping[str, Response]
    changed: frozenset[str]


class WrittenSuite(Suite):
    """A suite whose cases this process has just written; their digests are known to be right."""

    def verify_case(self, case_id: str) -> None:
        """Trust what was written a moment ago, rather than unpack every trace again."""


@dataclass(frozen=True)
class Asking:
    """One diagnoser and the cases of a suite that it is asked about.

    Attributes:
        spec: The diagnoser.
        labelled: The whole suite with its labels.
        options: How it is run; its `labels` must be a folder.
        case_ids: The cases that count.
        bar: Shows progress on one name and a number of cases.
    """

    spec: DiagnoserSpec
    labelled: Labelled
    options: RunOptions
    case_ids: tuple[str, ...]
    bar: Bar

    @property
    def folder(self) -> Path:
        """The diagnoser's results folder for the suite."""
        return results_folder(self.options.out, self.labelled.suite, self.spec.name)

    @cached_property
    def originals(self) -> dict[str, CaseCopy]:
        """The cases as they were recorded, checked against suite.json."""
        return {case_id: read_copy(self.labelled.suite, case_id) for case_id in self.case_ids}

    @cached_property
    def as_recorded(self) -> dict[str, Response]:
        """What it says of the cases as they were recorded."""
        own, ordinary = self.folder / FOLDER / AS_RECORDED, self.folder / ANSWERS
        if ordinary.is_file() and not (own / ANSWERS).exists():
            own.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ordinary, own / ANSWERS)  # those under the same key count
        suite = self.labelled.suite
        digests = {case_id: suite.info.cases[case_id] for case_id in self.case_ids}
        asked = Suite(suite.folder, suite.info.model_copy(update={"cases": digests}))
        return self._run(AS_RECORDED, asked)

    def about(self, name: str, change: Change) -> Asked:
        """Ask about copies; a case that `change` returns as it is keeps its answer.

        What has nothing left to look at is not asked about and counts as an abstention.

        Args:
            name: Of the folder that its answers are kept in, fit to be one.
            change: Returns a degraded copy of a case, or the case itself.
        """
        self.options.out.mkdir(parents=True, exist_ok=True)
        # Where results go links can be made to what is on the same disk, and no diagnoser looks.
        with tempfile.TemporaryDirectory(dir=self.options.out, prefix=".degraded.") as scratch:
            written, silent = _write(Path(scratch), self.originals, change)
            responses = self.as_recorded | {case_id: silence(case_id) for case_id in silent}
            if written:
                info = self.labelled.suite.info
                update = {"cases": written, "digest": document_digest(written)}
                suite = WrittenSuite(Path(scratch), info.model_copy(update=update))
                responses |= self._run(name, suite)
        return Asked(responses, frozenset({*written, *silent}))

    def scores(self, responses: Mapping[str, Response]) -> Scores:
        """Judge answers about the chosen cases."""
        chosen = set(self.case_ids)
        labels = [label for label in self.labelled.labels if label.case_id in chosen]
        return score(labels, responses, self.labelled.taxonomy)

    def isolation(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the isolation of the named askings, and whether all of them were sealed."""
        folders = [self.folder / FOLDER / name for name in (AS_RECORDED, *names)]
        runs = [read_run(folder) for folder in folders if (folder / RUN).is_file()]
        return {
            "level": self.options.level,
            "sealed": all(run["isolation"]["sealed"] for run in runs),
            "note": self.options.level_note,
        }

    def _run(self, name: str, suite: Suite) -> dict[str, Response]:
        whole = self.labelled.suite.folder
        labels = labels_folder(whole, self.labelled.labels_folder)
        options = replace(self.options, labels=labels, hidden=(whole,))
        folder = self.folder / FOLDER / name
        with self.bar(f"{self.spec.name} {name}", len(suite.info.cases)) as progress:
            run_diagnoser(self.spec, suite, self.labelled.labels, options, progress, folder)
        return responses_of(answers_of(folder, suite))


def silence(case_id: str) -> Response:
    """Return the answer of one who is shown nothing."""
    return Response(case_id, "ok", Diagnosis(verdict="abstain"), None)


def _write(
    folder: Path, originals: Mapping[str, CaseCopy], change: Change
) -> tuple[dict[str, str], list[str]]:
    """Write degraded copies one after the other, for together they are large.

    Returns:
        The digest of each that was written, and the cases of which nothing is left.
    """
    written, silent = {}, []
    for case_id, original in originals.items():
        copy = change(original)
        if copy is original:
            continue
        if copy.answerable:
            write_copy(copy, folder / case_id)
            written[case_id] = copy_digest(copy)
        else:
            silent.append(case_id)
    return written, silent
