"""Labels of a suite beside those of the same scenarios recorded again."""

import json
import shutil

import pytest
from click.testing import CliRunner

from cases.bundle import write_suite_info
from cases.documents import write_record
from cases.schema import Interval
from cases.taxonomy import Taxonomy
from cases.truth import Truth, read_truth
from harness.commands.cases import command
from injectors.matrix import JournalLine, journal_path, note


def repeat(suite, again, *more):
    arguments = ["repeat", str(again), "--suite", str(suite), *more]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    return result.exit_code, result.stdout


@pytest.fixture
def again(tiny_copy, tiny_suite):
    """The folder of a second recording: the same labels, and a journal of every group."""
    root = tiny_copy.parents[1]
    labels = root / "labels" / "tiny"
    groups = {}
    for path in labels.glob("*.json"):
        truth = read_truth(labels, path.stem)
        groups.setdefault(truth.group, []).append(truth.id)
    for group, ids in groups.items():
        line = JournalLine(scenario=group, digest=group, made=tuple(ids))
        note(journal_path(root, "tiny"), line)
    return root


def change(again, case_id, **changes):
    labels = again / "labels" / "tiny"
    truth = read_truth(labels, case_id)
    write_record(labels / f"{case_id}.json", truth.model_copy(update=changes))
    finish(again)


def finish(again):
    corpus, labels = again / "corpus" / "tiny", again / "labels" / "tiny"
    write_suite_info(corpus, "tiny", "Again", "public", Taxonomy.load(), labels)


def test_equal_labels_are_accepted_again(tiny_suite, again):
    status, text = repeat(tiny_suite, again)
    assert status == 0
    assert "9 of 9 labels" in text and "(100%" in text


def test_another_cost_and_a_refused_case_are_told(tiny_suite, again, tiny_ids):
    slow, lost = tiny_ids["loader_dev"], tiny_ids["loader_train"]
    truth: Truth = read_truth(again / "labels" / "tiny", slow)
    (fault,) = truth.faults
    far = fault.model_copy(update={"lost_fraction": Interval(value=0.8, low=0.79, high=0.81)})
    change(again, slow, faults=(far,))
    (again / "labels" / "tiny" / f"{lost}.json").unlink()
    shutil.rmtree(again / "corpus" / "tiny" / lost)
    finish(again)
    status, text = repeat(tiny_suite, again, "--json")
    document = json.loads(text)
    assert status == 1 and document["format"] == "evalharness.repeated/1.0"
    assert document["share"] == pytest.approx(7 / 9)
    told = {item["case_id"]: item["again"] for item in document["labels"] if not item["same"]}
    assert told[slow] == "dataloader_cpu_bound 0.80 [0.79, 0.81]"
    assert told[lost].startswith("not made")
    _, text = repeat(tiny_suite, again)
    assert "7 of 9 labels" in text and slow in text


def test_only_groups_recorded_again_are_asked(tiny_suite, again):
    journal = journal_path(again, "tiny")
    first = journal.read_text().splitlines()[0]
    journal.write_text(first + "\n")
    status, text = repeat(tiny_suite, again, "--json")
    assert status == 0
    assert {item["group"] for item in json.loads(text)["labels"]} == {json.loads(first)["scenario"]}


def test_a_folder_without_recordings_is_refused(tiny_suite, tmp_path):
    from cases.errors import BundleError

    with pytest.raises(BundleError, match=r"tiny\.journal\.jsonl.*must list scenarios"):
        repeat(tiny_suite, tmp_path)
