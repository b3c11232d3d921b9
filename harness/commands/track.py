"""`evalharness track`: send results to MLflow, now or later."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from cases.errors import InputError
from harness.baselines import model_name
from harness.stored import find_stored, read_stored
from harness.tracking import set_alias, track_results


@click.command("track")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--alias", help="Alias for the one run that is sent, such as champion.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(results: tuple[Path, ...], alias: str | None, as_json: bool) -> None:
    """Send RESULTS to MLflow: results folders, or folders that hold some.

    The store is MLFLOW_TRACKING_URI, else a sqlite file in your data folder. Sending the
    same results again updates the same run. With --alias, `gate --baseline
    mlflow:DIAGNOSER@ALIAS` finds it, until another run is given the alias.

    Example: evalharness track results/recorded_cpu/rules
    """
    folders = [folder for path in results for folder in find_stored(path)]
    if alias and len(folders) > 1:
        raise InputError("must be given to one result", where="--alias", found=len(folders))
    outcomes = []
    for folder in folders:
        outcome = track_results(folder)
        if alias:
            summary = read_stored(folder).summary
            set_alias(outcome.run_id, model_name(summary.suite, summary.diagnoser), alias)
        outcomes.append({"results": str(folder), **asdict(outcome)})
        if not as_json:
            done = "sent" if outcome.created else "updated"
            click.echo(f"{done}  {folder}  run {outcome.run_id} of {outcome.experiment}")
    if as_json:
        click.echo(json.dumps({"format": "evalharness.tracked/1.0", "runs": outcomes}, indent=1))
