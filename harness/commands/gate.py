"""`evalharness gate`: say whether a result passes a policy."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import click

from cases.documents import write_bytes
from harness.gate import judge
from harness.gate_report import as_json, as_junit, as_markdown, as_text
from harness.policy import read_policy
from harness.ruling import GateReport
from harness.stored import StoredResult, read_one
from harness.tracking import fetch_baseline

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("gate")
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--policy", "policy_file", required=True, type=FILE, help="YAML policy to judge by.")
@click.option("--baseline", help="Results to compare with: a folder, or mlflow:DIAGNOSER.")
@click.option("--junit", type=FILE, help="Write JUnit XML, a test case a rule.")
@click.option("--markdown", type=FILE, help="Write Markdown for a pull request.")
@click.option("--allow-unsealed", is_flag=True, help="Judge results of unsealed runs, too.")
@click.option("--json", "json_output", is_flag=True, help="Print one JSON document.")
def command(
    results: Path,
    policy_file: Path,
    baseline: str | None,
    junit: Path | None,
    markdown: Path | None,
    allow_unsealed: bool,
    json_output: bool,
) -> None:
    """Judge RESULTS, one results folder, by a policy. Exit status 0 pass, 1 stop.

    Example: evalharness gate results/recorded_cpu/rules --policy gate.yaml
    """
    policy = read_policy(policy_file)
    if allow_unsealed:
        require = policy.require.model_copy(update={"sealed": False})
        policy = policy.model_copy(update={"require": require})
    result = read_one(results)
    with tempfile.TemporaryDirectory(prefix="evalharness-gate-") as scratch:
        against = read_baseline(baseline, result, Path(scratch)) if baseline else None
        report = judge(policy, result, against)
    write_reports(report, junit, markdown)
    click.echo(json.dumps(as_json(report), indent=1) if json_output else as_text(report))
    sys.exit(0 if report.verdict == "pass" else 1)


def read_baseline(place: str, result: StoredResult, scratch: Path) -> StoredResult:
    """Read the baseline from a folder, or download the latest comparable run of a diagnoser."""
    name = place.removeprefix("mlflow:")
    if name == place:
        return read_one(Path(place))
    return fetch_baseline(result, name, scratch)


def write_reports(report: GateReport, junit: Path | None, markdown: Path | None) -> None:
    """Write the files that were asked for."""
    if junit:
        write_bytes(junit, as_junit(report))
    if markdown:
        write_bytes(markdown, as_markdown(report).encode())
