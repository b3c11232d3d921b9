"""What the author of a rule is told about one answer, and `evalharness ask`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cases.errors import InputError
from cases.schema import JOB, Diagnosis, Finding, Locus
from cases.taxonomy import Taxonomy
from harness.cli import cli
from harness.judge import load_labels
from harness.results import Answer
from harness.told import told
from scorers import Label

LOADER = Finding(cause="dataloader_cpu_bound", locus=JOB, confidence=0.8)
LINK = Finding(cause="slow_link", locus=Locus(scope="rank", ranks=(1,)), confidence=0.25)


@pytest.fixture(scope="module")
def labels(tiny_suite: Path) -> dict[str, Label]:
    return {label.case_id: label for label in load_labels(tiny_suite)}


def tell(label: Label, diagnosis: Diagnosis | None, **more: Any) -> dict[str, Any]:
    outcome = "ok" if diagnosis else "error"
    answer = Answer(case=label.case_id, key="k", outcome=outcome, diagnosis=diagnosis, **more)
    return told(answer, label, Taxonomy.load())


def test_right_and_wrong_beside_each_other(
    labels: dict[str, Label], tiny_ids: dict[str, str]
) -> None:
    label = labels[tiny_ids["loader_dev"]]
    both = tell(label, Diagnosis(verdict="faulty", findings=(LOADER, LINK)))
    assert (both["bucket"], both["right"]) == ("misled", False)
    assert [one["status"] for one in both["blamed"]] == ["true", "false"]
    cost = label.faults[0].lost_fraction.value
    assert both["text"].splitlines() == [
        f"{label.case_id} (dev): misled",
        f"  true:   dataloader_cpu_bound at job, costing {cost:.0%} of the time",
        "  blamed: dataloader_cpu_bound at job (confidence 0.80): true;"
        " slow_link at rank 1 (confidence 0.25): false, " + both["blamed"][1]["kind"],
    ]
    assert tell(label, Diagnosis(verdict="faulty", findings=(LOADER,)))["right"]


def test_silence_about_each_kind_of_case(
    labels: dict[str, Label], tiny_ids: dict[str, str]
) -> None:
    healthy, undecidable = (labels[tiny_ids[role]] for role in ("twin_dev", "undecidable_test"))
    quiet = tell(healthy, Diagnosis(verdict="healthy"))
    assert (quiet["bucket"], quiet["right"]) == ("quiet", True)
    assert quiet["text"].endswith("true:   healthy\n  blamed: nothing: healthy")
    blank = tell(undecidable, Diagnosis(verdict="abstain"))
    assert (blank["bucket"], blank["right"]) == ("abstained_blank", False)
    assert "cpu_contention_colocated) without loader, processes" in blank["text"]
    why = Diagnosis(verdict="abstain", missing_signals=("loader", "processes"))
    assert tell(undecidable, why)["right"]


def test_a_failure_is_told_by_the_last_of_its_error(
    labels: dict[str, Label], tiny_ids: dict[str, str]
) -> None:
    failed = tell(labels[tiny_ids["loader_dev"]], None, error="Traceback ...\nKeyError: 'x'\n")
    assert (failed["bucket"], failed["answered"]) == ("failed", None)
    assert failed["text"].endswith("blamed: nothing: error (KeyError: 'x')")


def ask(suite: Path, *more: str) -> Result:
    return CliRunner().invoke(cli, ["ask", "-d", "silent", "--suite", str(suite), *more])


def test_ask_about_some_cases(
    tiny_suite: Path, tiny_ids: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one, other = tiny_ids["loader_dev"], tiny_ids["twin_train"]
    Path("ids.txt").write_text(f"{other}\n{one}\n")
    done = ask(tiny_suite, "--case", one, "--cases-from", "ids.txt", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["case"] for line in lines} == {one, other}
    assert all(line["format"] == "evalharness.told/1.0" for line in lines)
    dev = ask(tiny_suite, "--split", "dev").stdout
    assert dev.count("(dev)") == 2
    assert f"{one} (dev): abstained" in dev
    unknown = ask(tiny_suite, "--case", "none0")
    assert isinstance(unknown.exception, InputError)
    assert "must be a case of tiny" in str(unknown.exception)
