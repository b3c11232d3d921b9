"""`evalharness score`: judge recorded answers again without running."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from harness.stored import find_stored
from harness.summarising import Labelled, answers_of, responses_of, summarise, timing
from harness.tables_view import render


@click.command()
@click.argument("results", type=click.Path(exists=True, path_type=Path))
@click.option("--suite", default="recorded_cpu", show_default=True, help="Name or folder.")
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="Folder of the labels, if not beside the corpus.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summaries as JSON.")
def command(results: Path, suite: str, labels: Path | None, as_json: bool) -> None:
    """Judge recorded answers again without running.

    RESULTS is a results folder, a folder of them, or an answers.jsonl alone. Folders get
    their summary.json and outcomes.parquet anew; a file alone is only judged and printed.

    Example: evalharness score results/recorded_cpu --suite recorded_cpu
    """
    labelled = Labelled.open(suite, labels)
    if results.is_file():
        summaries = [_judged(results, labelled)]
    else:
        folders = [results] if (results / "run.json").is_file() else find_stored(results)
        summaries = [summarise(folder, labelled) for folder in folders]
    click.echo(json.dumps(summaries, indent=1) if as_json else render(summaries))


def _judged(file: Path, labelled: Labelled) -> dict[str, Any]:
    """Judge a file of answers about whose run nothing is known."""
    answers = answers_of(file, labelled.suite)
    return {
        "suite": labelled.suite.info.name,
        "suite_digest": labelled.suite.info.digest,
        "diagnoser": file.stem,
        "isolation": {"level": "unknown", "sealed": False, "note": "how it ran is not known"},
        "ranked": False,
        **labelled.score(responses_of(answers)).summary(),
        "floors": labelled.floors,
        "timing": timing(list(answers.values())),
    }
