"""`evalharness compare` on answers written by hand, and on real runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cases.schema import Diagnosis
from harness.cli import cli, main
from harness.oracle import right_answer
from harness.results import Answer, append_answer
from harness.summarising import Labelled
from scorers import Label

Write = Callable[..., Path]
SILENT = Diagnosis(verdict="healthy")


@pytest.fixture(scope="module")
def labels() -> list[Label]:
    return Labelled.open("recorded_cpu").labels


@pytest.fixture
def write(tmp_path: Path, labels: list[Label]) -> Write:
    """Write answers to every shipped case: right where `knows` says so, else silent."""

    def answers(name: str, knows: Callable[[Label], bool] = lambda label: False) -> Path:
        path = tmp_path / f"{name}.jsonl"
        for label in labels:
            diagnosis = right_answer(label) if knows(label) else SILENT
            append_answer(
                path, Answer(case=label.case_id, key="k", outcome="ok", diagnosis=diagnosis)
            )
        return path

    return answers


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["compare", *map(str, arguments)])


def document(*arguments: object) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output + repr(result.exception)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_better_and_why(write: Write, labels: list[Label]) -> None:
    faulty = [label for label in labels if label.verdict == "faulty"]
    a, b = write("knows", lambda label: label.verdict == "faulty"), write("silent")
    found = document(a, b)
    assert (found["format"], found["verdict"]) == ("evalharness.comparison/1.0", "better")
    # Every fault is found: 0.2 of the prevalence.
    assert found["difference"] == pytest.approx(0.2)
    assert found["low"] <= 0.2 <= found["high"]
    assert found["a"] == {"diagnoser": "knows", "results": str(a), "sealed": None}
    assert len(found["flipped"]) == len(faulty)
    row = {row["case_id"]: row for row in found["flipped"]}[faulty[0].case_id]
    causes = ", ".join(fault.cause for fault in faulty[0].faults)
    assert (row["true"], row["blamed_a"], row["blamed_b"]) == (causes, causes, "")
    assert (row["bucket_a"], row["bucket_b"]) == ("found", "missed")
    secondary = {row["name"]: row for row in found["secondary"]}
    assert secondary["recall_cause_and_locus"]["verdict"] == "better"
    assert secondary["false_alarm_rate"]["p_value"] is None
    assert document(b, a)["verdict"] == "worse"


def test_text_says_the_same(write: Write) -> None:
    a, b = write("knows", lambda label: label.verdict == "faulty"), write("silent")
    text = call(a, b).stdout
    assert "better: A (knows) is worth more than B (silent)." in " ".join(text.split())
    assert "+0.200" in text
    assert "groups differ." in text
    assert "recall_in_host_network" in text
    assert "cases ended otherwise, the first 20 (--all shows them)" in text
    assert "A (knows): how it ran is not known" in text
    assert len(call(a, b, "--all").stdout) > len(text)


def test_tied_with_itself_is_inconclusive(write: Write) -> None:
    a = write("silent")
    text = call(a, a).stdout
    assert "inconclusive: A (silent) and B (silent) cannot be told apart." in " ".join(text.split())
    assert "0 groups differ, at least 6 are needed" in " ".join(text.split())
    assert "No case ended otherwise." in text
    assert document(a, a)["groups_needed"] is None


def test_domains_and_causes_that_differ(write: Write) -> None:
    def host(label: Label) -> bool:
        return any("cpu_contention" in fault.cause for fault in label.faults)

    found = document(write("host", host), write("silent"))
    differs = [row for row in found["causes"] if row["found_a"] != row["found_b"]]
    assert differs and all("cpu_contention" in row["cause"] for row in differs)
    secondary = {row["name"]: row for row in found["secondary"]}
    assert secondary["recall_in_host_network"]["difference"] > 0
    assert secondary["recall_in_data_checkpoint"]["difference"] == 0


def test_results_folders_and_mlflow(tiny_suite: Path, own_store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ["-d", "silent", "-d", "shotgun", "--suite", str(tiny_suite), "--out", str(out)]
    run = CliRunner().invoke(cli, ["run", *asked, "--track"])
    assert run.exit_code == 0, run.output
    suite = ["--suite", tiny_suite]
    found = document(out / "tiny/silent", out / "tiny/shotgun", *suite)
    assert (found["a"]["diagnoser"], found["b"]["diagnoser"]) == ("silent", "shotgun")
    # Nine cases in three groups: nothing can be told.
    assert (found["verdict"], found["groups"]) == ("inconclusive", 3)
    tracked = document(out / "tiny/silent", "mlflow:shotgun", *suite)
    assert tracked["difference"] == found["difference"]
    assert document("mlflow:silent", out / "tiny/shotgun", *suite)["flipped"] == found["flipped"]
    both = call(out / "tiny", out / "tiny/silent", *suite)
    assert "must be one results folder, holds shotgun, silent" in str(both.exception)


@pytest.mark.parametrize(
    ("sides", "more", "message"),
    [
        (("nowhere", "here.jsonl"), (), "must be or hold a results folder"),
        (("here.jsonl", "half.jsonl"), (), "have no answer"),
        (("here.jsonl", "here.jsonl"), ("--margin", "0"), "--margin: must be positive, found 0.0"),
        (("here.jsonl", "here.jsonl"), ("--suite", "none"), "none"),
        (("mlflow:a", "mlflow:b"), (), "must name a results folder for at least one side"),
    ],
)
def test_wrong_use_has_status_2(
    write: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    sides: tuple[str, str],
    more: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = write("here").read_text().splitlines(keepends=True)
    Path("half.jsonl").write_text("".join(lines[: len(lines) // 2]))
    with pytest.raises(SystemExit) as stop:
        main(["compare", *sides, *more])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
