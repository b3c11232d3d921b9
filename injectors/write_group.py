"""Writing the cases of a simulated group, each tried by its own witness first."""

from __future__ import annotations

import shutil

from cases.bundle import write_case
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
    made: list[str] = []
    refused = dict(group.refused)
    for case in group.cases:
        problem = write_one(case, target, set(made))
        if problem is None:
            made.append(case.info.id)
        else:
            refused[f"{group.name}/{case.info.id}"] = problem
    return JournalLine(scenario=group.name, digest=digest, made=tuple(made), refused=refused)


def write_one(case: MadeCase, target: Places, made: set[str]) -> str | None:
    """Write one case with its label, or say why it is refused."""
    folder, truth = target.cases / case.info.id, case.truth
    if truth.twin is not None and truth.twin not in made:
        return "its healthy twin was refused"
    shutil.rmtree(folder, ignore_errors=True)
    write_case(folder, case.info, case.tables, case.traces, case.reference)
    try:
        problem = witness_problem(truth, target)
        if problem is None:
            write_record(target.labels / f"{case.info.id}.json", promised(truth))
    except BaseException:
        shutil.rmtree(folder)  # no case without its label
        raise
    if problem is not None:
        shutil.rmtree(folder)
    return problem


def promised(truth: Truth) -> Truth:
    """Return the label with its twin among the cases on which the witness is false."""
    if truth.witness is None or truth.twin is None:
        return truth
    witness = truth.witness.model_copy(update={"false_on": (truth.twin,)})
    return truth.model_copy(update={"witness": witness})


def witness_problem(truth: Truth, target: Places) -> str | None:
    """Try the witness on its case and on the twin."""
    if truth.witness is None:
        return None
    try:
        if not holds(Case.open(target.cases / truth.id), truth.witness.sql):
            return (
                f"its witness is not true on it: the signals don't show that {truth.witness.says}"
            )
        if truth.twin and holds(Case.open(target.cases / truth.twin), truth.witness.sql):
            return f"its witness is true on its healthy twin as well: {truth.witness.says}"
    except QueryError as error:
        return f"its witness can't be asked: {error}"
    return None
