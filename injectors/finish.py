"""The last step of a suite: rival cases are asked each witness, and what stands is described."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

from cases.bundle import SUITE_FILE, Suite, truth_digests, write_suite_info
from cases.case import Case
from cases.digest import suite_digest
from cases.documents import read_record, write_record
from cases.errors import EvalHarnessError
from cases.taxonomy import Taxonomy
from cases.truth import Truth
from cases.witness import holds
from injectors.build import Places
from injectors.matrix import JournalLine
from injectors.rivals import rivals
from injectors.workers import Workers

Progress = Callable[[str, int, int], None]
REFUSED = "refused"  # folder beside the labels that says why cases were taken out in the end
Asked = tuple[str, str]  # whose witness, and its query


def finish(
    target: Places,
    name: str,
    title: str,
    kind: Literal["public", "private_seed"],
    lines: Iterable[JournalLine],
    workers: Workers,
    progress: Progress,
) -> None:
    """Refuse what can't be told from its rivals, and write suite.json if any case is left."""
    digests = {case: digest for line in lines for case, digest in line.digests.items()}
    taxonomy = Taxonomy.load()
    for case, reason in name_false_rivals(target, taxonomy, workers, progress).items():
        _refuse(target, case, reason)
        del digests[case]
    if digests:
        write_suite_info(target.cases, name, title, kind, taxonomy, target.labels, digests)


def name_false_rivals(
    target: Places, taxonomy: Taxonomy, workers: Workers, progress: Progress
) -> dict[str, str]:
    """Write into each label which rival cases its witness is false on, its twin first.

    A case is opened once, by one process, for all queries that are asked of it.

    Returns:
        Cases to refuse since nothing tells them from another one, each with the reason.
    """
    names = sorted(path.stem for path in target.labels.glob("*.json"))
    truths = {name: read_record(target.labels / f"{name}.json", Truth) for name in names}
    asked: dict[str, list[Asked]] = defaultdict(list)
    for name, truth in truths.items():
        if truth.witness is not None:
            for other in rivals(truth, truths, taxonomy):
                asked[other].append((name, truth.witness.sql))
    false_on: dict[str, list[str]] = defaultdict(list)
    true_on: dict[str, list[str]] = defaultdict(list)
    answers = workers.each(partial(_answers_of, target.cases), list(asked.items()))
    for done, (case, found) in enumerate(answers, 1):
        for owner, answer in found.items():
            (true_on if answer else false_on)[owner].append(case)
        progress("witnesses", done, len(asked))
    refused = least_to_refuse(true_on)
    # Those that will be refused are no cases of the suite.
    left = {name: sorted({*cases} - {*refused}) for name, cases in false_on.items()}
    for name, truth in truths.items():
        _promise(target, truth, left.get(name, []))
    return refused


def least_to_refuse(true_on: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Choose cases without which no witness is true on a rival, few of them.

    One case may show the signs of many causes (memory that is full evicts, delays and leaves
    seats empty): then it is what goes, not all those that it can be taken for. Of two that are
    in one conflict alone, the owner of the witness goes.

    Args:
        true_on: Owner of a witness -> rivals on which it is true as well.

    Returns:
        Case -> why it is refused.
    """
    conflicts = {(owner, rival) for owner, rivals in true_on.items() for rival in rivals}
    refused: dict[str, str] = {}
    while conflicts:
        counts = Counter(case for pair in conflicts for case in pair)
        owners = {owner for owner, _ in conflicts}
        worst = min(counts, key=lambda case: (-counts[case], case not in owners, case))
        others = sorted(rival for owner, rival in conflicts if owner == worst)
        refused[worst] = (
            f"its witness is true on its rival {others[0]} as well"
            if others
            else f"the witnesses of {counts[worst]} other cases are true on it as well"
        )
        conflicts = {pair for pair in conflicts if worst not in pair}
    return refused


def _answers_of(cases: Path, item: tuple[str, Sequence[Asked]]) -> tuple[str, dict[str, bool]]:
    return answers_on(cases / item[0], item[1])


def _promise(target: Places, truth: Truth, others: Sequence[str]) -> None:
    """Write on which cases the witness is false, if the label doesn't say so already."""
    if truth.witness is None:
        return
    twins = [truth.twin] if truth.twin else []
    witness = truth.witness.model_copy(update={"false_on": (*twins, *others)})
    if witness != truth.witness:
        label = truth.model_copy(update={"witness": witness})
        write_record(target.labels / f"{truth.id}.json", label)


def answers_on(folder: Path, asked: Sequence[Asked]) -> tuple[str, dict[str, bool]]:
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


def _refuse(target: Places, case: str, reason: str) -> None:
    file = target.labels / REFUSED / f"{case}.txt"
    file.parent.mkdir(exist_ok=True)
    file.write_text(reason + "\n", encoding="utf-8")
    shutil.rmtree(target.cases / case)
    (target.labels / f"{case}.json").unlink()


def forget_refused(target: Places) -> None:
    """Take away why cases were refused: their groups are made again, and all is asked again."""
    shutil.rmtree(target.labels / REFUSED, ignore_errors=True)


def is_finished(target: Places, name: str, lines: Sequence[JournalLine | None]) -> bool:
    """Whether the suite is there as these groups make it: nothing is missing, nothing is more."""
    if any(line is None for line in lines) or not (target.cases / SUITE_FILE).exists():
        return False
    suite = Suite.open(target.cases)
    made = {case for line in lines if line for case in line.made}
    refused = {path.stem for path in target.labels.glob(f"{REFUSED}/*.txt")}
    labels = {path.stem for path in target.labels.glob("*.json")}
    if (
        suite.info.name != name
        or {*suite.case_ids} | refused != made
        or {*suite.case_ids} != labels
    ):
        return False
    truths = truth_digests(target.labels, labels)
    stated = suite_digest(suite.info.cases, truths, Taxonomy.load().digest)
    there = all((target.cases / case).is_dir() for case in labels)
    return there and not suite.unlisted and stated == suite.info.digest


def drop_strangers(target: Places, lines: Iterable[JournalLine]) -> None:
    """Remove cases that no finished group of this plan made: of an older plan, or half done."""
    wanted = {case for line in lines for case in line.made}
    for folder in target.cases.glob("[!.]*"):
        if folder.is_dir() and folder.name not in wanted:
            shutil.rmtree(folder)
    for label in target.labels.glob("*.json"):
        if label.stem not in wanted:
            label.unlink()
