"""`make demo`: score the reference diagnosers on the shipped cases, then follow one case."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cases.bundle import Suite, find_suite
from cases.case import Case
from cases.errors import EvalHarnessError, InputError
from harness.cli import cli
from harness.diagnosers import DIAGNOSERS, ORACLE, rules
from harness.judge import load_labels
from scorers import Label

SUITE = "recorded_cpu"
MISLEADING = "cpu_contention_colocated"

COLLECTIVES = """
SELECT rank, round(avg(completed_ns - created_ns) / 1e6, 2) AS all_reduce_ms
FROM {run}collectives GROUP BY rank ORDER BY rank"""
QUEUES = """
SELECT rank, round(avg(send_queue_bytes)) AS send_queue_bytes, sum(retransmits) AS retransmits
FROM {run}network GROUP BY rank ORDER BY rank"""
DELAYS = """
SELECT rank, round(sum(run_delay_ns) * 1.0 / sum(cpu_ns), 2) AS waited_for_a_core_per_cpu_second
FROM {run}processes WHERE role = 'rank' GROUP BY rank ORDER BY rank"""
OTHERS = """
SELECT name, nice, round(sum(cpu_ns) / 1e9, 2) AS cpu_s
FROM {run}processes WHERE role = 'other' GROUP BY name, nice ORDER BY cpu_s DESC LIMIT 3"""


def demo() -> None:
    """Run, rank, and walk through one case; needs no torch."""
    names = [*DIAGNOSERS, ORACLE]
    specs = [word for name in names for word in ("-d", name)]
    click.echo(f"1. Run {', '.join(names)} on the shipped suite {SUITE}\n")
    cli.main(["run", *specs, "--suite", SUITE], standalone_mode=False)
    click.echo("\n2. The leaderboard, from MLflow\n")
    cli.main(["leaderboard", "--suite", SUITE], standalone_mode=False)
    click.echo("\n3. One case on which a plausible answer misleads\n")
    walk_through(*misleading_case(find_suite(SUITE)))


def misleading_case(folder: Path) -> tuple[Case, Label]:
    """The first case in which one rank of a pair loses its core, so the network looks slow."""
    for label in sorted(load_labels(folder), key=lambda label: label.case_id):
        for fault in label.faults:
            if (
                label.verdict == "faulty"
                and fault.cause == MISLEADING
                and fault.locus.scope == "rank"
                and len(label.topology.ranks) > 1
            ):
                return Suite.open(folder).case(label.case_id), label
    raise InputError(f"must hold a case of {MISLEADING} on one rank", where=folder)


def walk_through(case: Case, label: Label) -> None:
    """Show the plausible reading, the queries that refute it, the answer and the label."""
    slowdown = rules.number(case, rules.SLOWDOWN)
    click.echo(f"Case {case.info.id}: {case.info.title}.")
    click.echo(f"Its steps take {slowdown:.2f} times as long as in the reference run.\n")
    click.echo("A plausible reading: gradients take longer to reduce, so the network is slow.")
    compare(case, COLLECTIVES)
    click.echo("But a slow link leaves bytes waiting to be sent. Do they?")
    compare(case, QUEUES)
    click.echo("They do not wait as they would. What do the ranks themselves wait for?")
    compare(case, DELAYS)
    click.echo("One rank waits for its core, and the other for that rank. Who has the core?")
    compare(case, OTHERS)
    answer = rules.diagnose(case)
    for finding in answer.findings:
        where = finding.locus.model_dump(exclude_defaults=True) if finding.locus else "nowhere"
        click.echo(f"`rules` says: {finding.cause}, {where}")
    for fault in label.faults:
        lost = fault.lost_fraction
        click.echo(
            f"The label says: {fault.cause}, {fault.locus.model_dump(exclude_defaults=True)};"
            f" measured to cost {lost.value:.0%} of the job's time"
            f" (95 % interval {lost.low:.0%} to {lost.high:.0%})."
        )
    click.echo(f"\nThe raw numbers: evalharness cases show {case.info.id} --label")


def compare(case: Case, query: str) -> None:
    """Print a query, what it gives here, and what it gave in the reference run."""
    click.echo("\n  " + " ".join(query.format(run="").split()))
    for name, run in (("this run", ""), ("reference", "reference.")):
        frame = case.sql(query.format(run=run))
        text = frame.to_string(index=False) if len(frame) else "no rows"
        click.echo("\n".join(f"    {name:9} | {line}" for line in text.splitlines()))
    click.echo()


if __name__ == "__main__":
    try:
        demo()
    except EvalHarnessError as error:
        click.echo(f"evalharness: {error}", err=True)
        sys.exit(2)
