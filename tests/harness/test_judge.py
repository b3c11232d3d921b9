"""Labels are found beside the corpus and joined with what the case says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cases.errors import BundleError, RecordError
from harness.judge import load_labels


def test_labels_join_truth_and_description(tiny_suite: Path, tiny_ids: dict[str, str]) -> None:
    labels = {label.case_id: label for label in load_labels(tiny_suite)}
    assert sorted(labels) == sorted(tiny_ids.values()) == list(labels)
    faulty = labels[tiny_ids["contention_test"]]
    assert (faulty.verdict, faulty.split, faulty.group) == ("faulty", "public_test", "g2")
    assert faulty.faults[0].cause == "cpu_contention_colocated"
    assert len(faulty.topology.ranks) == 2
    assert faulty.duration_ns == pytest.approx(24 * 15e6, rel=0.02)
    assert labels[tiny_ids["undecidable_test"]].missing_signals == ("loader", "processes")


def test_missing_labels_name_the_option(tiny_suite: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="--labels"):
        load_labels(tiny_suite, tmp_path / "nowhere")


def test_label_of_another_case_is_refused(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    path = tiny_copy.parents[1] / "labels" / "tiny" / f"{tiny_ids['twin_dev']}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"id": tiny_ids["twin_train"]}))
    with pytest.raises(RecordError, match="own id"):
        load_labels(tiny_copy)
