"""`evalharness compare`: say which of two diagnosers is better, case by case."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.compare_report import as_json, as_text
from harness.comparing import compare_results


@click.command("compare")
@click.argument("a")
@click.argument("b")
@click.option("--suite", help="Name or folder; the one that the results name, if not given.")
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="Folder of the labels, if not beside the corpus.",
)
@click.option(
    "--margin",
    type=float,
    default=0.02,
    show_default=True,
    help="Difference in net benefit that does not matter.",
)
@click.option("--all", "everything", is_flag=True, help="Show all causes and cases that differ.")
@click.option("--json", "json_output", is_flag=True, help="Print one JSON document.")
def command(
    a: str,
    b: str,
    suite: str | None,
    labels: Path | None,
    margin: float,
    everything: bool,
    json_output: bool,
) -> None:
    """Compare two results on one suite, case by case: is A better than B, worse, or tied?

    A and B are results folders or files of answers; one of them may be mlflow:DIAGNOSER, its
    latest run that can be compared. Both are judged anew. Exit status 0 whatever the verdict
    is (`gate` is what stops), 2 if they cannot be compared.

    Example: evalharness compare results/recorded_cpu/mydiag results/recorded_cpu/rules
    """
    compared = compare_results((a, b), suite=suite, labels=labels, margin=margin)
    if json_output:
        click.echo(json.dumps(as_json(compared), indent=1, allow_nan=False))
    else:
        click.echo(as_text(compared, everything=everything))
