"""Writing the cases of a simulated group, each tried by its own witness first."""

from __future__ import annotations

import shutil
from pathlib import Path

from cases.bundle import RunData, StoredReference, write_case
from cases.case import Case
from cases.documents import write_record
from cases.errors import QueryError
from cases.truth import Truth
from cases.witness import holds
from injectors.build import Places
from injectors.matrix import JournalLine
from injectors.sim.made import MadeCase, MadeGroup


def write_group(group: MadeGroup, digest: str, target: Places) -> JournalLine:
    """Write a group's cases and labels; returns what was made and what was refused."""
    writer, refused = _Writer(target), dict(group.refused)
    for case in group.cases:
        problem = writer.write(case)
        if problem is not None:
            refused[f"{group.name}/{case.info.id}"] = problem
    return JournalLine(
        scenario=group.name,
        digest=digest,
        made=tuple(writer.digests),
        refused=refused,
        digests=writer.digests,
    )


class _Writer:
    """Writes one case after the other; what cases share is written and opened once.

    Attributes:
        digests: Of the cases that were written, by id.
    """

    def __init__(self, target: Places) -> None:
        self._target = target
        # By id of the run, which is kept so that no other one gets its id.
        self._references: dict[int, tuple[RunData, StoredReference]] = {}
        self._twins: dict[str, Case] = {}
        self.digests: dict[str, str] = {}

    def write(self, case: MadeCase) -> str | None:
        """Write one case with its label, or say why it is refused."""
        folder, truth = self._target.cases / case.info.id, case.truth
        if truth.twin is not None and truth.twin not in self.digests:
            return "its healthy twin was refused"
        shutil.rmtree(folder, ignore_errors=True)
        reference = self._reference(case)
        digest = write_case(folder, case.info, case.tables, case.traces, reference, quick=True)
        try:
            problem = self._witness_problem(truth)
            if problem is None:
                write_record(self._target.labels / f"{truth.id}.json", promised(truth))
        except BaseException:
            shutil.rmtree(folder)  # no case without its label
            raise
        if problem is not None:
            shutil.rmtree(folder)
            return problem
        self.digests[truth.id] = digest
        self._keep(case.reference, folder)
        return None

    def _reference(self, case: MadeCase) -> RunData | StoredReference | None:
        """Where a case that was written has the same reference run, that one."""
        if case.reference is None:
            return None
        return self._references.get(id(case.reference), (None, case.reference))[1]

    def _keep(self, reference: RunData | None, folder: Path) -> None:
        if reference is not None:
            stored = (reference, StoredReference(folder))
            self._references.setdefault(id(reference), stored)

    def _witness_problem(self, truth: Truth) -> str | None:
        """Try the witness on its case and on the twin."""
        if truth.witness is None:
            return None
        sql, says = truth.witness.sql, truth.witness.says
        try:
            if not holds(Case.open(self._target.cases / truth.id), sql):
                return f"its witness is not true on it: the signals don't show that {says}"
            if truth.twin and holds(self._twin(truth.twin), sql):
                return f"its witness is true on its healthy twin as well: {says}"
        except QueryError as error:
            return f"its witness can't be asked: {error}"
        return None

    def _twin(self, case: str) -> Case:
        if case not in self._twins:
            self._twins[case] = Case.open(self._target.cases / case)
        return self._twins[case]


def promised(truth: Truth) -> Truth:
    """Return the label with its twin among the cases on which the witness is false."""
    if truth.witness is None or truth.twin is None:
        return truth
    witness = truth.witness.model_copy(update={"false_on": (truth.twin,)})
    return truth.model_copy(update={"witness": witness})
