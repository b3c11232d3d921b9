"""A leaderboard as text, JSON, Markdown and a web page that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from textwrap import fill
from typing import Any

from harness.leaderboard import COLUMNS, MIX, Board, Row
from harness.leaderboard_facts import ANSWERS, facts
from harness.stored import Metric

HEAD = ("rank", "diagnoser", *COLUMNS)
HEADING_CHARS = 16
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
table { border-collapse: collapse; display: block; overflow-x: auto }
th, td { padding: .3rem .7rem; text-align: left; border-bottom: 1px solid #8886 }
td { font-variant-numeric: tabular-nums; white-space: nowrap }
.floor, .apart { opacity: .7 }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } }
""".strip()


def table(board: Board) -> list[tuple[str, list[str]]]:
    """Return the rows as (kind, cells in the order of HEAD), kind ranked, floor or apart."""
    lines = [("ranked", _cells(row)) for row in board.rows]
    lines += [
        ("floor", ["floor", name, *(_number(values.get(metric)) for metric in COLUMNS.values())])
        for name, values in board.floors.items()
    ]
    return lines + [("apart", _cells(row)) for row in board.apart]


def _cells(row: Row) -> list[str]:
    place = str(row.rank) if row.rank is not None else row.why
    tied = " tied" if row.tied else ""
    return [place + tied, row.run.diagnoser, *(_interval(row.metric(name)) for name in COLUMNS)]


def _interval(metric: Metric) -> str:
    """Two decimals: intervals over groups are never known better."""
    if metric.low is None or metric.high is None:
        return _number(metric.value) or "none"
    return f"{_number(metric.value)} [{_number(metric.low)}, {_number(metric.high)}]"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def title(board: Board) -> str:
    """Name the suite, its labels' kind, its digest and the scoring."""
    digest = board.suite_digest.removeprefix("sha256:")[:12]
    return f"{board.suite}, {board.labels} labels, digest {digest}, scoring {board.scoring_version}"


def as_text(board: Board) -> str:
    """Return an aligned table with its title and notes; its headings take two lines."""
    shown = [i for i, name in enumerate(HEAD) if COLUMNS.get(name) in (None, *_told(board))]
    halves = [fill(name, HEADING_CHARS).split("\n") for name in HEAD]
    heads = [[[*half, ""][line] for half in halves] for line in range(2)]
    rows = [[row[i] for i in shown] for row in (*heads, *(cells for _, cells in table(board)))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(shown))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([title(board), "", *lines, "", *board.notes])


def _told(board: Board) -> list[str]:
    """Metrics of the text table: of the two ways to mix cases, the one that ranks."""
    return [name for name in COLUMNS.values() if name not in MIX or name == board.ranked_by]


def as_markdown(board: Board) -> str:
    """Return a Markdown section."""
    lines = [f"### {title(board)}", "", _bar(HEAD), "|" + "---|" * len(HEAD)]
    lines += [_bar(cells) for _, cells in table(board)]
    lines += ["", *(f"{note}\n" for note in board.notes)]
    head = ("diagnoser", *ANSWERS)
    lines += [_bar(head), "|" + "---|" * len(head)]
    lines += [_bar(cells) for cells in answered(board)]
    lines += ["", *(f"- **{name}**: {' '.join(said)}" for name, said in told(board)), ""]
    return "\n".join(lines)


def answered(board: Board) -> list[list[str]]:
    """Return a row a diagnoser: how its cases were answered, and what that took."""
    runs = [row.run for row in (*board.rows, *board.apart)]
    return [[run.diagnoser, *(column(run) for column in ANSWERS.values())] for run in runs]


def told(board: Board) -> list[tuple[str, tuple[str, str]]]:
    """Return two lines a diagnoser, see `leaderboard_facts.facts`."""
    runs = [row.run for row in (*board.rows, *board.apart)]
    return [(run.diagnoser, facts(run)) for run in runs]


def as_page(boards: Sequence[Board], suites: Sequence[str]) -> str:
    """Return a whole Markdown document of the rankings of several suites."""
    asked = " ".join(f"--suite {suite}" for suite in suites)
    intro = (
        f"Written by `evalharness leaderboard {asked} --markdown FILE` from tracked runs. Ranked"
        " are sealed runs on the same digest; figures of different suites are not comparable, and"
        " simulated suites say nothing by themselves about recorded ones. What each figure means:"
        " [scoring](scoring.md)."
    )
    return "\n".join(["# Leaderboard", "", intro, "", *map(as_markdown, boards)])


def _bar(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def as_html(boards: Sequence[Board]) -> str:
    """Return one standalone page of all rankings."""
    body = "\n".join(_section(board) for board in boards)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>evalharness leaderboard</title>\n<style>\n{STYLE}\n</style>\n</head>\n"
        f"<body>\n<h1>evalharness leaderboard</h1>\n{body}\n</body>\n</html>\n"
    )


def _section(board: Board) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in HEAD)
    rows = "\n".join(
        f'<tr class="{kind}">' + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for kind, cells in table(board)
    )
    notes = "\n".join(f"<p>{escape(note)}</p>" for note in board.notes)
    more = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in ("diagnoser", *ANSWERS))
    how = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for cells in answered(board)
    )
    lines = "\n".join(
        f"<li><b>{escape(name)}</b>: {escape(' '.join(said))}</li>" for name, said in told(board)
    )
    return (
        f"<section>\n<h2>{escape(title(board))}</h2>\n<table>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n{notes}\n"
        f"<table>\n<thead><tr>{more}</tr></thead>\n<tbody>\n{how}\n</tbody>\n</table>\n"
        f"<ul>\n{lines}\n</ul>\n</section>"
    )


def as_json(boards: Sequence[Board]) -> dict[str, Any]:
    """Return all rankings as a versioned JSON document."""
    return {
        "format": "evalharness.leaderboard/1.0",
        "boards": [
            {
                "suite": board.suite,
                "suite_digest": board.suite_digest,
                "scoring_version": board.scoring_version,
                "labels": board.labels,
                "ranked_by": board.ranked_by,
                "rows": [_record(row) for row in board.rows],
                "apart": [_record(row) for row in board.apart],
                "floors": board.floors,
            }
            for board in boards
        ],
    }


def _record(row: Row) -> dict[str, Any]:
    metrics = {
        metric: row.run.metric(metric).model_dump(include={"value", "low", "high"})
        for metric in COLUMNS.values()
    }
    return {
        "rank": row.rank,
        "tied": row.tied,
        "why": row.why,
        "diagnoser": row.run.diagnoser,
        "run_id": row.run.run_id,
        "metrics": metrics,
    }
