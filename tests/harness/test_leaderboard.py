from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.leaderboard import Board, boards
from harness.leaderboard_facts import ANSWERS, facts
from harness.leaderboard_report import as_html, as_markdown, as_text
from harness.tracked import TrackedRun
from harness.tracking import track_results

MakeResults = Callable[..., Path]


def run(
    diagnoser: str,
    benefit: tuple[float, float, float] | None = (0.2, 0.1, 0.3),
    *,
    misled: float = 0.1,
    run_id: str = "",
    **tags: str,
) -> TrackedRun:
    name = "net_benefit_w1_reference"
    metrics = {"misled_rate": misled, "floor/silent/misled_rate": 0.0, f"floor/silent/{name}": 0.0}
    if benefit is not None:
        metrics |= dict(zip((name, f"{name}_low", f"{name}_high"), benefit, strict=True))
    usual = {"suite_digest": "sha256:aa", "scoring_version": "1.0", "labels": "public"}
    tags = usual | {"sealed": "true", "ranked": "true"} | tags
    return TrackedRun(run_id or diagnoser, diagnoser, 0, tags, metrics)


def board(*runs: TrackedRun) -> Board:
    (only,) = boards("recorded_cpu", runs)
    return only


def test_net_benefit_ranks_and_silence_does_not_win() -> None:
    silent = run("silent", (0.0, 0.0, 0.0), misled=0.0)
    poor, good = run("poor", (-0.2, -0.3, -0.1), misled=0.4), run("good", (0.3, 0.2, 0.4))
    rows = board(poor, silent, good).rows
    assert [(row.rank, row.run.diagnoser) for row in rows] == [
        (1, "good"),
        (2, "silent"),
        (3, "poor"),
    ]


def test_equal_benefit_goes_by_fewer_misled_then_name() -> None:
    rows = board(run("b"), run("c", misled=0.05), run("a")).rows
    assert [row.run.diagnoser for row in rows] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("interval", "tied"),
    [((0.2, 0.1, 0.3), True), ((0.2, 0.1, 0.29), False), ((0.3, 0.3, 0.3), True)],
)
def test_tied_if_the_interval_holds_the_leaders_value(
    interval: tuple[float, float, float], tied: bool
) -> None:
    first, second = board(run("lead", (0.3, 0.0, 0.6), misled=0.0), run("next", interval)).rows
    assert (first.tied, second.tied) == (False, tied)


def test_unsealed_unranked_and_unsupporting_ones_stand_apart() -> None:
    best = (0.9, 0.8, 1.0)
    of_other_kinds = run("needs gpus", (0.0, 0.0, 0.0))
    of_other_kinds.metrics["unsupported_rate"] = 1.0
    found = board(
        run("open", best, sealed="false"),
        run("retried", best, ranked="false"),
        run("both", (0.1, 0.0, 0.2), sealed="false", ranked="false"),
        run("fair", (0.1, 0.0, 0.2)),
        of_other_kinds,
    )
    assert [(row.rank, row.run.diagnoser) for row in found.rows] == [(1, "fair")]
    assert [(row.rank, row.run.diagnoser, row.why) for row in found.apart] == [
        (None, "open", "unsealed"),
        (None, "retried", "unranked"),
        (None, "both", "unsealed, unranked"),
        (None, "needs gpus", "supports no case"),
    ]
    assert facts(of_other_kinds)[0] == "Supports none of these cases."


def test_latest_run_counts_and_an_unsealed_one_does_not_replace_it() -> None:
    found = board(
        run("rules", run_id="newest", sealed="false"),
        run("rules", run_id="new"),
        run("rules", (0.9, 0.8, 1.0), run_id="old"),
    )
    assert [row.run.run_id for row in found.rows] == ["new"]
    assert [row.run.run_id for row in found.apart] == ["newest"]


def test_digests_and_scorings_never_share_a_ranking() -> None:
    found = boards(
        "recorded_cpu",
        [run("a"), run("b", suite_digest="sha256:bb"), run("c", scoring_version="2.0"), run("d")],
    )
    names = [[row.run.diagnoser for row in board.rows] for board in found]
    assert names == [["a", "d"], ["b"], ["c"]]


def test_a_suite_without_the_reference_mix_is_ranked_by_its_own() -> None:
    names = [f"net_benefit_w1{end}" for end in ("", "_low", "_high")]
    runs = [run("poor", None), run("good", None)]
    runs[0].metrics.update(zip(names, (0.1, 0.0, 0.2), strict=True))
    runs[1].metrics.update(zip(names, (0.5, 0.4, 0.6), strict=True))
    found = board(*runs)
    assert [(row.rank, row.run.diagnoser) for row in found.rows] == [(1, "good"), (2, "poor")]
    assert "own mix" in found.notes[0] and "reference prevalence" not in found.notes[0]


def test_without_a_score_there_is_no_rank() -> None:
    rows = board(run("blank", None), run("scored")).rows
    assert [(row.rank, row.run.diagnoser, row.why) for row in rows] == [
        (1, "scored", ""),
        (None, "blank", "not scored"),
    ]


def test_text_and_markdown_show_misled_first_floors_below_and_how_it_is_ranked() -> None:
    found = board(run("good", (0.3, 0.2, 0.4)), run("open", sealed="false"))
    for text in (as_text(found), as_markdown(found)):
        lines = text.splitlines()
        order = [next(i for i, line in enumerate(lines) if word in line) for word in
                 ("misled", "good", "silent", "open", "Ranked by net benefit")]  # fmt: skip
        assert order == sorted(order)
        assert "0.30 [0.20, 0.40]" in text


class Page(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def test_page_stands_alone_and_escapes_names() -> None:
    text = as_html([board(run("<script>x</script>"))])
    page = Page()
    page.feed(text)
    # Heading, one diagnoser, one floor; and how it answered, with a heading.
    assert page.tags.count("tr") == 3 + 2
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not {"src", "href", "onload"} & set(page.attributes)
    assert "@import" not in text and "url(" not in text


def test_command_reads_what_was_tracked(
    make_results: MakeResults, own_store: Path, tmp_path: Path
) -> None:
    benefit = {"net_benefit_w1_reference": {"value": 0.5, "low": 0.4, "high": 0.6}}
    track_results(make_results("better", metrics=benefit))
    track_results(make_results("worse"))
    track_results(make_results("open", metrics=benefit, sealed=False))
    track_results(make_results("older", suite_digest="sha256:bb"))

    done = CliRunner().invoke(cli, ["leaderboard", "--suite", "recorded_cpu", "--json", "--all"])
    assert done.exit_code == 0, done.output
    newest, other = json.loads(done.stdout)["boards"]
    assert [row["diagnoser"] for row in newest["rows"]] == ["older"]
    assert [(row["rank"], row["diagnoser"]) for row in other["rows"]] == [
        (1, "better"),
        (2, "worse"),
    ]
    assert [row["diagnoser"] for row in other["apart"]] == ["open"]
    assert other["floors"]["silent"]["misled_rate"] == 0.0
    misled = other["rows"][0]["metrics"]["misled_rate"]
    assert misled == pytest.approx({"value": 1 / 12, "low": 1 / 24, "high": 1 / 12 + 0.1})

    page, text = tmp_path / "board.html", tmp_path / "board.md"
    line = ["leaderboard", "--suite", "recorded_cpu", "--html", str(page), "--markdown", str(text)]
    assert CliRunner().invoke(cli, line).exit_code == 0
    assert "older" in page.read_text() and "better" not in page.read_text()
    assert "| 1 | older |" in text.read_text()


def test_a_page_of_several_suites(
    make_results: MakeResults, own_store: Path, tmp_path: Path
) -> None:
    track_results(make_results("one"))
    track_results(make_results("two", suite="other"))
    text = tmp_path / "board.md"
    line = ["leaderboard", "--suite", "recorded_cpu", "--suite", "other", "--markdown", str(text)]
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 0, done.output
    page = text.read_text()
    assert page.startswith("# Leaderboard") and page.count("### ") == 2
    assert page.index("recorded_cpu, public") < page.index("other, public")


def test_facts_come_from_the_figures_of_the_run() -> None:
    metrics = {
        "coverage": 0.5, "abstention_rate": 0.25, "unsupported_rate": 0.2, "failed_rate": 0.05,
        "recall_of_slow_link": 0.75, "recall_of_slow_link_low": 0.6, "recall_of_power_cap": 0.5,
        "recall_of_other_inference": 1.0, "recall_of_gpu_noisy_neighbor": 0.4,
        "precision_of_slow_link": 0.9, "precision_of_power_cap": 0.1,
        "precision_of_power_cap_applicable": 0.0,
        "recall_domain": 0.31, "recall_mechanism": 0.2, "recall_cause": 0.1,
    }  # fmt: skip
    told = facts(TrackedRun("id", "mine", 0, {}, metrics))
    assert told == (
        "Answers 50% of the cases, abstains on 25%, does not support 20%, fails on 5%.",
        "Right about the domain of 31%, the mechanism of 20%, the cause of 10% of faults;"
        " finds slow_link (recall 0.75), power_cap (recall 0.50);"
        " mostly wrong where it says power_cap (precision 0.10).",
    )
    mute = {"recall_of_slow_link": 0.0}
    said = facts(TrackedRun("id", "mute", 0, {}, mute))[1]
    assert said == "Finds no cause in half of its cases."
    few = {"recall_of_other_inference": 1.0, "recall_cause": 0.97}
    assert facts(TrackedRun("id", "few", 0, {}, few))[1] == (
        "Right about the cause of 97% of faults; no cause has cases enough to be told."
    )


def test_time_tokens_and_cost_are_shown_where_they_are_known() -> None:
    metrics = {
        "timing/seconds_median": 1.25, "timing/peak_memory_bytes_median": 2.5e8,
        "cost/tokens/prompt_tokens": 12000.0, "cost/tokens/completion_tokens": 345.0,
        "cost/cost": 0.0417,
    }  # fmt: skip
    shown = {
        title: column(TrackedRun("id", "llm", 0, {"isolation": "sealed"}, metrics))
        for title, column in ANSWERS.items()
    }
    assert shown["s a case"] == "1.25" and shown["MB"] == "250"
    assert shown["tokens"] == "12,345" and shown["cost"] == "0.0417"
    assert shown["isolation"] == "sealed" and shown["failed"] == ""


def test_unknown_suite_names_the_command_that_fills_it(own_store: Path) -> None:
    done = CliRunner().invoke(cli, ["leaderboard", "--suite", "nothing"])
    assert "evalharness track RESULTS" in str(done.exception)
