"""`evalharness stress`: say what becomes of a diagnoser's answers as recordings get worse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cases.documents import write_json
from harness.commands.asking_options import asking, asking_options
from harness.degrade.grades import DEGRADATIONS
from harness.pictures.stress import STRESS
from harness.stress import stress
from harness.stress_report import as_text

HTML = click.Path(path_type=Path, file_okay=False)


@click.command("stress")
@asking_options
@click.option(
    "--degradation",
    "names",
    multiple=True,
    type=click.Choice(list(DEGRADATIONS)),
    help="Only this one; may be given again.",
)
@click.option("--html", type=HTML, help="Draw it, too: a page, and its data, into this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(names: tuple[str, ...], html: Path | None, as_json: bool, **options: Any) -> None:
    """Ask again about recordings made worse, and see whether answers fall silent or mislead.

    Ranks are missing, traces end early, samples are far apart, clocks differ, events are lost,
    measurements are off, profiled steps take longer: each in grades, drawn by the seed. Answers,
    and stress.json, go to OUT/SUITE/DIAGNOSER.

    Example: evalharness stress -d rules --suite recorded_cpu --degradation noise
    """
    with asking(**options) as asked:
        found = stress(asked, names, options["seed"])
        document = found.document()
        write_json(asked.folder / STRESS, document)
    click.echo(json.dumps(document, indent=1) if as_json else as_text(found))
    if html:
        from harness.pictures.page import write_page

        write_page(html, f"{found.diagnoser} on {found.suite}", asked.folder)
