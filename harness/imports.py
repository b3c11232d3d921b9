"""Adding imported cases to a suite, with the labels that come with them."""

from __future__ import annotations

import shutil
from pathlib import Path

from cases.bundle import SUITE_FILE, Suite, write_suite_info
from cases.importing import ImportOptions, import_case
from cases.taxonomy import Taxonomy
from harness.judge import state_label
from injectors.suites import suite_places

TITLE = "Jobs that were recorded elsewhere"


def add_case(
    source: Path,
    root: Path,
    name: str,
    options: ImportOptions,
    reference: Path | None = None,
    label: Path | None = None,
) -> tuple[str, Suite]:
    """Import a case into the suite `root/suites/name`, made if it is not there.

    Args:
        source: Traces of the job.
        root: Folder with `suites` and `labels`.
        name: Of the suite.
        options: What the traces do not tell.
        reference: Traces of an earlier healthy run.
        label: What its owner states about it; nothing of the case stays if it breaks its record.

    Returns:
        The id of the case, and the suite with it.

    Raises:
        InputError: the traces, or the label, cannot be used.
    """
    places = suite_places(root, name)
    suite, labels = places.cases, places.labels
    labels.mkdir(parents=True, exist_ok=True)
    known = Suite.open(suite).info.cases if (suite / SUITE_FILE).is_file() else {}
    info = import_case(source, suite, options, reference)
    try:
        if label:
            state_label(label, info.id, labels)
        write_suite_info(suite, name, TITLE, "public", Taxonomy.load(), labels, known)
    except BaseException:
        shutil.rmtree(suite / info.id, ignore_errors=True)
        raise
    return info.id, Suite.open(suite)
