"""`evalharness ablate`: say which signals a diagnoser's accuracy comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cases.documents import write_json
from cases.errors import InputError
from cases.tables import SIGNALS
from harness.ablate import ablate
from harness.ablate_report import as_text
from harness.commands.asking_options import asking, asking_options
from harness.degrade.effects import EFFECTS
from harness.pictures.ablation import ABLATION

HTML = click.Path(path_type=Path, file_okay=False)


@click.command("ablate")
@asking_options
@click.option("--signal", "signals", multiple=True, help="Only this one; may be given again.")
@click.option(
    "--by",
    type=click.Choice(list(EFFECTS)),
    default="recall",
    show_default=True,
    help="What the signals are ranked by.",
)
@click.option("--html", type=HTML, help="Draw it, too: a page, and its data, into this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    signals: tuple[str, ...], by: str, html: Path | None, as_json: bool, **options: Any
) -> None:
    """Withhold each signal, and leave each alone: what of the accuracy does each one buy?

    Each signal is taken from the cases and from their reference runs, and the diagnoser is asked
    again. Answers, and ablation.json, go to OUT/SUITE/DIAGNOSER.

    Example: evalharness ablate -d rules --suite recorded_cpu --split dev
    """
    if unknown := sorted(set(signals) - set(SIGNALS)):
        raise InputError(f"must be among {list(SIGNALS)}", where="--signal", found=unknown[0])
    with asking(**options) as asked:
        found = ablate(asked, signals, by)
        document = found.document()
        write_json(asked.folder / ABLATION, document)
    click.echo(json.dumps(document, indent=1) if as_json else as_text(found))
    if html:
        from harness.pictures.page import write_page

        write_page(html, f"{found.diagnoser} on {found.suite}", asked.folder)
