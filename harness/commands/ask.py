"""`evalharness ask`: ask a diagnoser about single cases and judge each answer as it comes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cases.bundle import Suite
from harness.commands.asking_options import asking, asking_options
from harness.degrade.asking import Asking
from harness.results import Answer
from harness.running import run_diagnoser
from harness.told import said, told

FOLDER = "asked"


@click.command("ask")
@asking_options
@click.option("--case", "cases", multiple=True, help="Id of a case; may be given again.")
@click.option(
    "--cases-from",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File with an id a line.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document a line.")
def command(cases: tuple[str, ...], cases_from: Path | None, as_json: bool, **options: Any) -> None:
    """Ask a diagnoser about single cases: what was true, and what did it blame?

    Without --case, about all cases of the split. Each answer is judged and printed as it comes;
    answers already given by the same code are used again.

    Example: evalharness ask -d rules --case 18bc2b3cf4c5
    """
    named = [*cases, *(cases_from.read_text().split() if cases_from else ())]
    with asking(**options) as asked:
        ask(asked, tuple(dict.fromkeys(named)) or asked.case_ids, as_json)


def ask(asking: Asking, case_ids: tuple[str, ...], as_json: bool) -> None:
    """Ask about cases and print each answer, judged.

    Raises:
        InputError: there is no such case.
    """
    labelled = asking.labelled
    labels = {label.case_id: label for label in labelled.labels}
    for case_id in case_ids:
        labelled.suite.case_folder(case_id)

    def show(answer: Answer, reused: bool) -> None:
        label = labels.get(answer.case)
        document = told(answer, label, labelled.taxonomy) if label else said(answer)
        click.echo(json.dumps(document) if as_json else document["text"])

    info = labelled.suite.info
    digests = {case_id: info.cases[case_id] for case_id in case_ids}
    suite = Suite(labelled.suite.folder, info.model_copy(update={"cases": digests}))
    folder = asking.folder / FOLDER
    run_diagnoser(asking.spec, suite, labelled.labels, asking.options, show, folder)
