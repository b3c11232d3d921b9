"""`evalharness taxonomy`, as users call it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cases.errors import InputError
from cases.taxonomy import Taxonomy
from harness.cli import cli, main

PAGE = Path(__file__).parents[3] / "docs" / "taxonomy.md"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["taxonomy", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_tree_has_every_name_once_a_line():
    taxonomy = Taxonomy.load()
    lines = [line.strip("│├└─ ") for line in run().splitlines()[1:]]
    assert lines == [f"{name}  {taxonomy.title(name)}" for name in taxonomy.nodes]


def test_inner_node_shows_what_is_below_it():
    assert "gpu_noisy_neighbor" in run("gpu_sharing")
    assert "slow_link" not in run("gpu_sharing")


def test_cause_is_told_in_full(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    text = run("storage_fetch_stall")
    cause = Taxonomy.load().causes["storage_fetch_stall"]
    expected = [cause.title, cause.mechanism, *cause.symptoms, *cause.decisive_signals]
    expected += [other.discriminator for other in cause.confused_with]
    expected += ["- dataloader_cpu_bound if: Most of", "- not unfused_kernels if: steps.data_wait"]
    expected += ["open_clip#899 issue (issue, confirmed): slow hard disk"]
    assert [part for part in expected if part not in text] == []


def test_lines_fit_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, run("storage_fetch_stall").splitlines())) <= 60


def test_json_of_all_and_of_a_part():
    whole, part = json.loads(run("--json")), json.loads(run("loader_workers", "--json"))
    assert list(whole["nodes"]) == list(Taxonomy.load().nodes)
    assert whole["nodes"]["slow_link"]["needs_root"] is True
    assert "hidden_slow_read" in whole["decoys"]
    assert list(part["nodes"]) == ["loader_workers", *Taxonomy.load().children("loader_workers")]
    assert part["digest"] == whole["digest"]


def test_unknown_name_exits_with_2(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["taxonomy", "slow_lnk"])
    assert stop.value.code == 2
    assert "slow_link" in capsys.readouterr().err


def test_markdown_stands_alone():
    assert CliRunner().invoke(cli, ["taxonomy", "slow_link", "--markdown"]).exit_code == 2


def test_page_holds_the_current_table():
    assert PAGE.read_text(encoding="utf-8").endswith(f"\n{run('--markdown')}")


def test_error_is_ours():
    with pytest.raises(InputError):
        CliRunner().invoke(cli, ["taxonomy", "nobody"], catch_exceptions=False)
