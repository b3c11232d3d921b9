"""`make demo`: score the reference diagnosers on recorded and simulated cases, then follow two."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

import click

from cases.bundle import find_suite
from cases.errors import EvalHarnessError, HarnessError
from harness.cli import cli
from harness.diagnosers import DIAGNOSERS, ORACLE
from harness.two_tools import two_tools
from harness.walks import lost_core

SUITE = "recorded_cpu"
SIMULATED = "simulated_smoke"
SLOW = ("forest",)  # has a minute of its own to spend, see docs/forest.md


def demo() -> None:
    """Run, rank, and walk through two cases; needs no torch."""
    click.echo(f"1. The shipped suite {SUITE}: jobs broken for real on CPU cores\n")
    rank(SUITE)
    click.echo(f"\n2. {SIMULATED}: simulated jobs of up to 16 GPUs, built here\n")
    cli.main(["cases", "build", SIMULATED], standalone_mode=False)
    rank(SIMULATED)
    click.echo("\n3. One case on which a plausible answer misleads\n")
    lost_core(find_suite(SUITE))
    click.echo("\n4. One simulated case, put to two tools that others wrote\n")
    two_tools(find_suite(SIMULATED))


def rank(suite: str) -> None:
    """Run the bundled diagnosers on a suite and print the leaderboard, from MLflow."""
    shown = (name for name, bundled in DIAGNOSERS.items() if not bundled.model)
    names = [*(name for name in shown if name not in SLOW), ORACLE]
    specs = [word for name in names for word in ("-d", name)]
    with contextlib.redirect_stdout(io.StringIO()):  # the leaderboard shows the same figures
        jobs = str(os.cpu_count() or 1)
        cli.main(
            ["run", *specs, "--suite", suite, "--jobs", jobs, "--track"], standalone_mode=False
        )
    cli.main(["leaderboard", "--suite", suite], standalone_mode=False)
    click.echo(f"\nEvery answer is in {Path('results', suite)}.")


if __name__ == "__main__":
    try:
        demo()
    except EvalHarnessError as error:
        click.echo(f"evalharness: {error}", err=True)
        sys.exit(3 if isinstance(error, HarnessError) else 2)
