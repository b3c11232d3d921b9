"""`evalharness doctor`: what works on this machine, and why the rest does not."""

from __future__ import annotations

import json

import click

from harness.aligned import aligned
from harness.doctor import examine


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(as_json: bool) -> None:
    """Try what can be injected, recorded and isolated here, leaving nothing behind.

    Every cause of the taxonomy is listed: in which jobs it can be injected, or what is missing.

    Example: evalharness doctor
    """
    report = examine()
    if as_json:
        click.echo(json.dumps(report, indent=1))
        return
    for title, rows in report.items():
        cells = [(line["name"], "yes" if line["ok"] else "no", line["reason"]) for line in rows]
        click.echo(aligned((title, "here", "why"), cells))
        click.echo()
    causes = report["causes"]
    here = sum(line["ok"] for line in causes)
    click.echo(f"{here} of {len(causes)} causes can be injected here")
