"""The last step of a suite: on which rival cases each witness is false."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import suppress
from pathlib import Path

from cases.case import Case
from cases.documents import read_record, write_record
from cases.errors import EvalHarnessError
from cases.taxonomy import Taxonomy
from cases.truth import Truth
from cases.witness import holds
from injectors.build import Places
from injectors.rivals import rivals

Progress = Callable[[str, int, int], None]


def name_false_rivals(
    target: Places, taxonomy: Taxonomy, pool: Executor, progress: Progress
) -> dict[str, str]:
    """Write into each label which rival cases its witness is false on, its twin first.

    A case is opened once, by one process, for all queries that are asked of it.

    Returns:
        Cases whose witness is true on a rival as well, so that nothing tells the two apart, each
        with the first such rival.
    """
    names = sorted(path.stem for path in target.labels.glob("*.json"))
    truths = {name: read_record(target.labels / f"{name}.json", Truth) for name in names}
    asked: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, truth in truths.items():
        if truth.witness is not None:
            for other in rivals(truth, truths, taxonomy):
                asked[other].append((name, truth.witness.sql))
    futures = [pool.submit(answers_on, target.cases / case, own) for case, own in asked.items()]
    false_on: dict[str, list[str]] = defaultdict(list)
    true_on: dict[str, list[str]] = defaultdict(list)
    for done, future in enumerate(as_completed(futures), 1):
        case, answers = future.result()
        for owner, answer in answers.items():
            (true_on if answer else false_on)[owner].append(case)
        progress("witnesses", done, len(futures))
    for name, truth in truths.items():
        if truth.witness is None:
            continue
        twins = [truth.twin] if truth.twin else []
        # Those that will be refused are no cases of the suite.
        others = sorted(set(false_on[name]) - set(true_on))
        witness = truth.witness.model_copy(update={"false_on": (*twins, *others)})
        if witness != truth.witness:
            write_record(
                target.labels / f"{name}.json", truth.model_copy(update={"witness": witness})
            )
    return {name: min(cases) for name, cases in true_on.items()}


def answers_on(folder: Path, asked: Sequence[tuple[str, str]]) -> tuple[str, dict[str, bool]]:
    """Return a case's id and which owners' witnesses are true on it, those that can be asked."""
    case = Case.open(folder)
    answers: dict[str, bool] = {}
    known: dict[str, bool] = {}  # many faults of a kind have the same query
    for owner, sql in asked:
        with suppress(EvalHarnessError):  # it can't be asked there, which proves nothing
            if sql not in known:
                known[sql] = holds(case, sql)
            answers[owner] = known[sql]
    return folder.name, answers
