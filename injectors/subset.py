"""A split of a suite as a suite of its own, so that diagnosers need not be asked about the rest.

    subset(core, labels_of_core, "public_test", out)  # -> simulated_core_public_test

Its cases are the same files, with the same ids and digests. Labels are the same but for
`witness.false_on`, which names only cases that are there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from cases.bundle import Suite, write_suite_info
from cases.documents import link_or_copy, read_record, write_record
from cases.errors import InputError
from cases.schema import SuiteInfo
from cases.taxonomy import Taxonomy
from cases.truth import Truth
from injectors.suites import suite_places


def subset(folder: Path, labels: Path, split: str, out: Path) -> SuiteInfo:
    """Make a suite of the cases of one split; one that is there already is made anew.

    Args:
        folder, labels: Of the suite.
        split: train, dev or public_test.
        out: Folder that gets `suites/<suite>_<split>` and `labels/<suite>_<split>`.

    Raises:
        InputError: no case is of that split.
    """
    suite = Suite.open(folder)
    known = dict(_of_split(suite, split, labels))
    if not known:
        must = f"must be a split of {suite.info.name} that has cases"
        raise InputError(must, where="split", found=split)
    name = f"{suite.info.name}_{split}"
    target = suite_places(out, name)
    beside = suite_places(out, f".{name}.{os.getpid()}")
    try:
        for case_id in known:
            shutil.copytree(folder / case_id, beside.cases / case_id, copy_function=link_or_copy)
        for truth in known.values():
            write_record(beside.labels / f"{truth.id}.json", _among(truth, known))
        digests = {case_id: suite.info.cases[case_id] for case_id in known}
        title = f"{suite.info.title} ({split})"
        kind, taxonomy = suite.info.labels, Taxonomy.load()
        info = write_suite_info(beside.cases, name, title, kind, taxonomy, beside.labels, digests)
        for made, place in ((beside.labels, target.labels), (beside.cases, target.cases)):
            shutil.rmtree(place, ignore_errors=True)
            made.rename(place)
    finally:
        shutil.rmtree(beside.cases, ignore_errors=True)
        shutil.rmtree(beside.labels, ignore_errors=True)
    return info


def _of_split(suite: Suite, split: str, labels: Path) -> Iterator[tuple[str, Truth]]:
    for case_id in suite.case_ids:
        truth = read_record(labels / f"{case_id}.json", Truth)
        if truth.split == split:
            yield case_id, truth


def _among(truth: Truth, known: Mapping[str, Truth]) -> Truth:
    """Leave out of a label the cases that are not there; twins are, as groups are of one split."""
    if truth.witness is None:
        return truth
    there = tuple(case for case in truth.witness.false_on if case in known)
    witness = truth.witness.model_copy(update={"false_on": there})
    return truth.model_copy(update={"witness": witness})
