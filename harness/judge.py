"""The one module of harness that reads labels: everything else gets them from here.

Labels of the suite `<root>/corpus/<suite>` lie in `<root>/labels/<suite>`, never where a
diagnoser runs.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc

from cases.bundle import Suite, truth_digests
from cases.case import Case, Recording
from cases.digest import suite_digest
from cases.documents import parse_record, read_yaml, write_record
from cases.errors import BundleError, RecordError
from cases.schema import CaseInfo
from cases.truth import (
    Ablated,
    Counterfactual,
    PairedTrials,
    Stated,
    StatedLabel,
    Truth,
    read_truth,
)
from scorers.inputs import Label

__all__ = [
    "Ablated",
    "Counterfactual",
    "PairedTrials",
    "Stated",
    "Truth",
    "duration_ns",
    "healthy_counterparts",
    "label_of",
    "labelled_digest",
    "labels_folder",
    "load_labels",
    "load_truths",
    "state_label",
]


def labels_folder(suite_folder: Path, labels: Path | None = None) -> Path:
    """Folder of a suite's labels: `labels` if given, else the one beside the corpus."""
    suite_folder = suite_folder.resolve()
    folder = labels or suite_folder.parents[1] / "labels" / suite_folder.name
    if not folder.is_dir():
        raise BundleError("must hold the suite's labels (see --labels)", where=folder)
    return folder


def load_truths(suite_folder: Path, labels: Path | None = None) -> dict[str, Truth]:
    """Read the labels of all cases of a suite, by case id in sorted order.

    Imported cases without a label are left out.
    """
    folder = labels_folder(suite_folder, labels)
    truths, suite = {}, Suite.open(suite_folder)
    for case_id in suite.case_ids:
        if not (folder / f"{case_id}.json").exists() and _is_imported(suite, case_id):
            continue
        truth = read_truth(folder, case_id)
        if truth.id != case_id:
            where = folder / f"{case_id}.json"
            raise RecordError("must be the case's own id", where=where, field="id", found=truth.id)
        truths[case_id] = truth
    return truths


def _is_imported(suite: Suite, case_id: str) -> bool:
    return suite.case(case_id).info.provenance.backend == "imported"


def state_label(source: Path, case_id: str, folder: Path) -> Truth:
    """Write the label that comes with an imported case into a folder of labels.

    Args:
        source: A YAML document `evalharness.label/1.0`.
        case_id: The case that it is about.
        folder: Where the suite's labels lie.

    Raises:
        RecordError: the document breaks its record.
    """
    stated = parse_record(read_yaml(source), StatedLabel, where=source)
    document = {
        **stated.model_dump(exclude={"format", "source", "group"}),
        "format": Truth.model_fields["format"].default,
        "id": case_id,
        "group": stated.group or f"imported-{case_id}",
        "validation": Stated(source=stated.source, decision=stated.verdict),
        "recipe": {"imported": stated.source},
    }
    truth = parse_record(document, Truth, where=source)
    write_record(folder / f"{case_id}.json", truth)
    return truth


def load_labels(suite_folder: Path, labels: Path | None = None) -> list[Label]:
    """Read what the scorers need to know of every case of a suite, in the order of ids."""
    suite = Suite.open(suite_folder)
    truths = load_truths(suite_folder, labels)
    return [label_of(suite.case(case_id), truth) for case_id, truth in truths.items()]


def healthy_counterparts(suite_folder: Path, labels: Path | None = None) -> dict[str, str | None]:
    """Name for each case a healthy one of the same job, None where the suite holds none.

    A healthy case is its own: what is true of it is true of a healthy job.
    """
    truths = load_truths(suite_folder, labels)
    return {
        case_id: case_id if truth.verdict == "healthy" else truth.twin
        for case_id, truth in truths.items()
    }


def label_of(case: Case, truth: Truth) -> Label:
    """Put together what is true of a case and what it says about itself."""
    info: CaseInfo = case.info
    return Label(
        case_id=info.id,
        group=truth.group,
        split=truth.split,
        verdict=truth.verdict,
        faults=truth.faults,
        decoys=truth.decoys,
        candidates=truth.candidates,
        missing_signals=truth.missing_signals,
        topology=info.topology,
        kind=info.kind,
        backend=info.provenance.backend,
        question=info.question,
        duration_ns=duration_ns(case),
    )


def duration_ns(run: Recording) -> int | None:
    """End of the last step (or engine step) since the run's start, None where unknown."""
    for name in ("steps", "engine"):
        table = run.arrow(name)
        ends = pc.max(pc.add(table["start_ns"], table["duration_ns"])).as_py()
        if ends is not None:
            return int(ends)
    return None


def labelled_digest(suite: Suite, taxonomy_digest: str, labels: Path | None = None) -> str:
    """Compute a suite's digest from its stated case digests, labels and the taxonomy."""
    folder = labels_folder(suite.folder, labels)
    truths = truth_digests(folder, suite.info.cases)
    return suite_digest(suite.info.cases, truths, taxonomy_digest)
