"""`evalharness report`: draw finished results."""

from __future__ import annotations

from pathlib import Path

import click

from harness.pictures.page import write_page
from harness.stored import find_stored, read_stored


@click.command("report")
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--html",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the page and for each picture's data.",
)
def command(results: Path, html: Path) -> None:
    """Draw RESULTS, a results folder or a folder that holds some, as pages that need no network.

    Confusion, reliability, risk and coverage, net benefit, recall against cost; and what `ablate`
    and `stress` found, where they were run. Beside the page lies each picture's data as CSV. Of
    several results each gets a folder SUITE/DIAGNOSER of its own.

    Example: evalharness report results/recorded_cpu/rules --html report
    """
    folders = find_stored(results)
    for folder in folders:
        summary = read_stored(folder).summary
        own = html / summary.suite / summary.diagnoser if len(folders) > 1 else html
        click.echo(write_page(own, f"{summary.diagnoser} on {summary.suite}", folder))
