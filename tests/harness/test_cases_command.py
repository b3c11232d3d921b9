"""The `cases` command as a user runs it, on a suite of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands.cases import command


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    return result.exit_code, result.stdout


def test_list_tells_no_label_unless_asked(tiny_suite: Path) -> None:
    status, text = run("list", "--suite", tiny_suite)
    assert status == 0 and len(text.splitlines()) == 10
    assert "faulty" not in text and "dataloader" not in text and "public_test" not in text
    _, labelled = run("list", "--suite", tiny_suite, "--labels")
    assert labelled.count("dataloader_cpu_bound") == 2
    assert labelled.count(" undecidable ") == 1


def test_list_as_json(tiny_suite: Path, tiny_ids: dict[str, str]) -> None:
    _, text = run("list", "--suite", tiny_suite, "--json")
    document = json.loads(text)
    assert document["format"] == "evalharness.cases/1.0"
    by_id = {case["id"]: case for case in document["cases"]}
    assert set(by_id) == set(tiny_ids.values())
    hidden = by_id[tiny_ids["undecidable_test"]]
    assert hidden["signals"] == ["steps", "host", "trace_events"]
    assert "verdict" not in hidden


def test_show(tiny_suite: Path, tiny_ids: dict[str, str]) -> None:
    status, text = run("show", tiny_ids["loader_dev"], "--suite", tiny_suite, "--json")
    shown = json.loads(text)
    assert status == 0
    assert shown["rows"] == {
        "steps": 48,
        "host": 5,
        "processes": 15,
        "loader": 48,
        "traces.rank0": 6,
    }
    assert shown["mean_step_ms"] == pytest.approx(15, rel=0.01)
    assert shown["slowdown"] == pytest.approx(1.5, rel=0.01)
    assert [event["name"] for event in shown["top_events"]] == ["aten::mm"]
    assert "label" not in shown
    _, text = run("show", tiny_ids["loader_dev"], "--suite", tiny_suite)
    assert "ratio 1.5" in text and "dataloader" not in text
    _, text = run("show", tiny_ids["loader_dev"], "--suite", tiny_suite, "--label")
    assert "dataloader_cpu_bound" in text and "baseline_s" in text


def test_check_says_yes_and_no(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    status, text = run("check", "--suite", tiny_copy)
    assert status == 0 and "Everything holds." in text
    assert "faulty=4, healthy=3, healthy with decoy=1, undecidable=1" in text
    path = tiny_copy / tiny_ids["twin_dev"] / "case.json"
    path.write_text(path.read_text().replace("Small", "Large"))
    status, text = run("check", "--suite", tiny_copy)
    assert status == 1 and f"digest: {tiny_ids['twin_dev']}: " in text
    status, text = run("check", "--suite", tiny_copy, "--json")
    assert status == 1 and json.loads(text)["passed"] is False


def test_labels_may_lie_elsewhere(tiny_copy: Path) -> None:
    labels = tiny_copy.parents[1] / "labels" / "tiny"
    elsewhere = labels.rename(tiny_copy.parents[2] / "private")
    status, _ = run("check", "--suite", tiny_copy, "--labels-folder", elsewhere)
    assert status == 0


def test_audit_of_a_clean_suite(tiny_suite: Path) -> None:
    status, text = run("audit", "--suite", tiny_suite, "--json")
    audit = json.loads(text)
    assert audit["words"] == [] and audit["passed"] and status == 0
    assert audit["withheld"] == [{"signals": ["loader", "processes"], "cases": 1, "undecidable": 1}]
    columns = {tell["column"] for tell in audit["tells"] if tell["cause"] == "dataloader_cpu_bound"}
    assert "loader.cpu_ns / reference" in columns
    status, text = run("audit", "--suite", tiny_suite)
    assert status == 0 and "passed" in text and "FAILED" not in text


def test_audit_finds_a_leaking_word(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    path = tiny_copy / tiny_ids["loader_dev"] / "case.json"
    path.write_text(path.read_text().replace("Small language", "Injected language"))
    status, text = run("audit", "--suite", tiny_copy)
    assert status == 1
    assert f"{tiny_ids['loader_dev']} case.json: 'injected'" in text
