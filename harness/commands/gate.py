"""`evalharness gate`: say whether a result passes a policy."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from cases.documents import write_bytes
from cases.errors import InputError
from harness.baselines import read_baseline
from harness.gate import judge, uses_public_test
from harness.gate_report import as_json, as_junit, as_markdown, as_text
from harness.gate_uses import log_path, log_use
from harness.policy import Policy, read_policy
from harness.ruling import GateReport
from harness.stored import StoredResult, read_one

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("gate")
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--policy", "policy_file", required=True, type=FILE, help="YAML policy to judge by.")
@click.option(
    "--baseline",
    help="Results to compare with: a folder, mlflow:DIAGNOSER, mlflow:DIAGNOSER@ALIAS,"
    " runs:/RUN_ID or models:/MODEL@ALIAS.",
)
@click.option("--junit", type=FILE, help="Write JUnit XML, a test case a rule.")
@click.option("--markdown", type=FILE, help="Write Markdown for a pull request.")
@click.option("--json-file", type=FILE, help="Write the JSON document as well.")
@click.option("--allow-unsealed", is_flag=True, help="Judge results of unsealed runs, too.")
@click.option("--json", "json_output", is_flag=True, help="Print one JSON document.")
def command(
    results: Path,
    policy_file: Path,
    baseline: str | None,
    junit: Path | None,
    markdown: Path | None,
    json_file: Path | None,
    allow_unsealed: bool,
    json_output: bool,
) -> None:
    """Judge RESULTS, one results folder, by a policy.

    Exit status 0 pass, 1 stop; what inconclusive does, the policy says. The dev split is
    looked at unless the policy names another; uses of the public test split are logged.

    Example: evalharness gate results/recorded_cpu/rules --policy gate.yaml
    """
    policy = read_policy(policy_file)
    if allow_unsealed:
        require = policy.require.model_copy(update={"sealed": False})
        policy = policy.model_copy(update={"require": require})
    result = read_one(results)
    with tempfile.TemporaryDirectory(prefix="evalharness-gate-") as scratch:
        against = read_baseline(baseline, result, Path(scratch)) if baseline else None
        report = judge(policy, result, against, policy_file)
    report = _logged(report, policy, result, policy_file)
    document = json.dumps(as_json(report), indent=1)
    for file, content in ((junit, as_junit(report)), (markdown, as_markdown(report).encode())):
        if file:
            write_bytes(file, content)
    if json_file:
        write_bytes(json_file, f"{document}\n".encode())
    click.echo(document if json_output else as_text(report))
    sys.exit(0 if report.passed else 1)


def _logged(
    report: GateReport, policy: Policy, result: StoredResult, policy_file: Path
) -> GateReport:
    """Log a use of the public test split; a log that cannot be written is no reason to stop."""
    if not uses_public_test(policy, result.outcomes().reset_index()):
        return report
    try:
        count = log_use(report, result.summary.diagnoser_digest, policy_file)
    except (OSError, InputError) as error:
        click.echo(f"evalharness: use of the public test split is not logged: {error}", err=True)
        return replace(report, public_test_use=0)
    told = f"use {count} of the public test split of {report.suite}, logged in {log_path()}"
    click.echo(f"evalharness: {told}", err=True)
    return replace(report, public_test_use=count)
