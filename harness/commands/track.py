"""`evalharness track`: send results to MLflow, now or later."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from harness.stored import find_stored
from harness.tracking import track_results


@click.command("track")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(results: tuple[Path, ...], as_json: bool) -> None:
    """Send RESULTS to MLflow: results folders, or folders that hold some.

    The store is MLFLOW_TRACKING_URI, else a sqlite file in your data folder. Sending the
    same results again updates the same run.

    Example: evalharness track results/recorded_cpu/rules
    """
    folders = [folder for path in results for folder in find_stored(path)]
    outcomes = []
    for folder in folders:
        outcome = track_results(folder)
        outcomes.append({"results": str(folder), **asdict(outcome)})
        if not as_json:
            done = "sent" if outcome.created else "updated"
            click.echo(f"{done}  {folder}  run {outcome.run_id} of {outcome.experiment}")
    if as_json:
        click.echo(json.dumps({"format": "evalharness.tracked/1.0", "runs": outcomes}, indent=1))
