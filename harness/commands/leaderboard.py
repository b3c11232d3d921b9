"""`evalharness leaderboard`: rank all tracked diagnosers of a suite."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cases.documents import write_bytes
from harness.leaderboard import boards
from harness.leaderboard_report import as_html, as_json, as_page, as_text
from harness.tracking import tracked_runs

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("leaderboard")
@click.option(
    "--suite",
    "suites",
    required=True,
    multiple=True,
    help="Suite whose runs are ranked; repeatable.",
)
@click.option("--markdown", type=FILE, help="Write a Markdown page instead of printing a table.")
@click.option("--html", type=FILE, help="Write a standalone web page instead.")
@click.option("--json", "json_output", is_flag=True, help="Print one JSON document.")
@click.option("--all", "everything", is_flag=True, help="Show older digests and scorings, too.")
def command(
    suites: tuple[str, ...],
    markdown: Path | None,
    html: Path | None,
    json_output: bool,
    everything: bool,
) -> None:
    """Rank the latest tracked run of every diagnoser on each suite.

    Only runs of one suite digest and scoring version share a ranking; unsealed and unranked
    runs stand apart below it.

    Example: evalharness leaderboard --suite recorded_cpu --html board.html
    """
    shown = []
    for suite in suites:
        found = boards(suite, tracked_runs(suite))
        shown += found if everything else found[:1]
    if markdown:
        write_bytes(markdown, as_page(shown, suites).encode())
    if html:
        write_bytes(html, as_html(shown).encode())
    if json_output:
        click.echo(json.dumps(as_json(shown), indent=1))
    elif not (markdown or html):
        click.echo("\n\n".join(as_text(board) for board in shown) or "No complete run yet.")
