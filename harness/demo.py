"""`make demo`: score the reference diagnosers on recorded and simulated cases, then follow one."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cases.bundle import Suite, find_suite
from cases.case import Case
from cases.errors import EvalHarnessError, HarnessError, InputError
from cases.schema import SCOPE_FIELDS, Fault, Finding, Locus, Scope
from cases.taxonomy import Taxonomy
from harness.cli import cli
from harness.diagnosers import DIAGNOSERS, ORACLE
from harness.judge import load_labels
from harness.step_time import slowdown
from scorers import Label
from scorers.judging import judge

SUITE = "recorded_cpu"
SIMULATED = "simulated_smoke"
WORKLOAD = "language_model"
SLOW = ("forest",)  # has a minute of its own to spend, see docs/forest.md

ALL_REDUCE = """
SELECT rank, round(avg(completed_ns - created_ns) / 1e6, 1) AS all_reduce_ms
FROM {run}collectives GROUP BY rank ORDER BY rank"""
PARTS = """
SELECT avg(last - first) / 1e6 AS wait_for_last_rank_ms, avg(done - last) / 1e6 AS transfer_ms
FROM (SELECT min(created_ns) AS first, max(created_ns) AS last, max(completed_ns) AS done
      FROM {run}collectives GROUP BY seq)"""
DELAYS = """
SELECT rank, round(sum(run_delay_ns) / sum(cpu_ns), 2) AS waited_for_a_core_per_cpu_second
FROM {run}processes WHERE role = 'rank' GROUP BY rank ORDER BY rank"""
OTHERS = """
SELECT name, nice, round(sum(cpu_ns) / 1e9, 2) AS cpu_s
FROM {run}processes WHERE role = 'other' GROUP BY name, nice ORDER BY cpu_s DESC, name LIMIT 3"""


def demo() -> None:
    """Run, rank, and walk through one case; needs no torch."""
    click.echo(f"1. The shipped suite {SUITE}: jobs broken for real on CPU cores\n")
    rank(SUITE)
    click.echo(f"\n2. {SIMULATED}: simulated jobs of up to 16 GPUs, built here\n")
    cli.main(["cases", "build", SIMULATED], standalone_mode=False)
    rank(SIMULATED)
    click.echo("\n3. One case on which a plausible answer misleads\n")
    walk_through(find_suite(SUITE))


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


def walk_through(folder: Path) -> None:
    """Take a rank that lost its core for a slow network, and find out."""
    suite, labels = Suite.open(folder), load_labels(folder)
    label, fault = pair_with(labels, "cpu_contention_colocated", "rank", suite)
    compared, _ = pair_with(labels, "slow_link", "link", suite)
    case, slow_network = suite.case(label.case_id), suite.case(compared.case_id)

    click.echo(f"Case {case.info.id}: {case.info.title}.")
    click.echo(f"Its steps take {slowdown(case):.2f} times as long as in the reference run.\n")
    click.echo("A plausible reading: gradients take longer to reduce, so the network is slow.")
    compare(case, ALL_REDUCE)
    click.echo("But a rank that is late makes the others wait in the same call. Take it apart:")
    compare(case, PARTS)
    waits, transfers = growth(case, PARTS)
    click.echo(
        f"Once the last rank is there, the transfer takes {transfers:.1f} times as long as before"
        f" ({growth(slow_network, PARTS)[1]:.1f} times in {slow_network.info.id}, whose link is"
        f" slow). What grew is the wait for the last rank, {waits:.1f} times. Why is it late?"
    )
    compare(case, DELAYS)
    click.echo("It waits for its core. Who has that?")
    compare(case, OTHERS)
    links = tuple(link.name for link in label.topology.links)
    plausible = Finding(cause="slow_link", locus=Locus(scope="link", links=links))
    right = Finding(cause=fault.cause, locus=fault.locus)
    click.echo(f"{plausible.cause} at {place(plausible.locus)} is scored {score(plausible, label)}")
    click.echo(f"{right.cause} at {place(right.locus)} is scored {score(right, label)}\n")
    lost = fault.lost_fraction
    click.echo(
        f"The label: {fault.cause} at {place(fault.locus)}, measured to cost {lost.value:.0%} of"
        f" the job's time (95 % interval {lost.low:.0%} to {lost.high:.0%})."
        f"\nIts raw numbers: evalharness cases show {case.info.id} --label"
    )


def pair_with(
    labels: Sequence[Label], cause: str, scope: Scope, suite: Suite
) -> tuple[Label, Fault]:
    """The first case of two ranks, with this cause at this scope alone, and its fault."""
    for label in sorted(labels, key=lambda label: label.case_id):
        if label.verdict != "faulty" or len(label.topology.ranks) != 2 or len(label.faults) != 1:
            continue
        (fault,) = label.faults
        workload = suite.case(label.case_id).info.workload.name
        if (fault.cause, fault.locus.scope, workload) == (cause, scope, WORKLOAD):
            return label, fault
    must = f"must hold a {WORKLOAD} of two ranks with {cause} at one {scope}"
    raise InputError(must, where=suite.folder)


def compare(case: Case, query: str) -> None:
    """Print a query, what it gives here, and what it gave in the reference run."""
    click.echo("\n  " + " ".join(query.format(run="").split()) + "\n")
    for name, run in (("this run", ""), ("reference", "reference.")):
        frame = case.sql(query.format(run=run))
        text = frame.round(1 if query is PARTS else 2).to_string(index=False)
        shown = text.splitlines() if len(frame) else ["nothing"]
        click.echo("\n".join(f"    {name:9} | {line}" for line in shown))
    click.echo()


def growth(case: Case, query: str) -> list[float]:
    """Each number of a one-row query over what it is in the reference run."""
    here, there = (case.sql(query.format(run=run)).iloc[0] for run in ("", "reference."))
    return [float(ratio) for ratio in here / there]


def score(finding: Finding, label: Label) -> str:
    """Name the fault's bucket if this finding is the whole answer, and how it misleads."""
    judgement = judge([finding], label, Taxonomy.load())
    kind: Any = judgement.kinds[0]
    return judgement.buckets[0] + (f" ({kind})" if kind else "")


def place(locus: Locus | None) -> str:
    """Name a place, such as `rank 1`.

    >>> place(Locus(scope="rank", ranks=(1,))), place(Locus(scope="job"))
    ('rank 1', 'job')
    """
    if locus is None:
        return "no place"
    names = getattr(locus, SCOPE_FIELDS.get(locus.scope, ""), ())
    return " ".join([locus.scope, *map(str, names)])


if __name__ == "__main__":
    try:
        demo()
    except EvalHarnessError as error:
        click.echo(f"evalharness: {error}", err=True)
        sys.exit(3 if isinstance(error, HarnessError) else 2)
