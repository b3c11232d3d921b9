"""Walking through one case: what looks plausible, the queries that settle it, and the scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cases.bundle import Suite
from cases.case import Case
from cases.errors import InputError
from cases.schema import Fault, Finding, Locus, Scope
from cases.taxonomy import Taxonomy
from harness.judge import load_labels
from harness.step_time import slowdown
from harness.told import place
from scorers import Label
from scorers.judging import judge

WORKLOAD = "language_model"

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


def lost_core(folder: Path) -> None:
    """Take a rank that lost its core for a slow network, and find out."""
    suite, labels = Suite.open(folder), load_labels(folder)
    label, fault = case_of(labels, suite, "cpu_contention_colocated", "rank", WORKLOAD, 2)
    compared, _ = case_of(labels, suite, "slow_link", "link", WORKLOAD, 2)
    case, slow_network = suite.case(label.case_id), suite.case(compared.case_id)

    introduce(case)
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


def case_of(
    labels: Sequence[Label], suite: Suite, cause: str, scope: Scope, workload: str, ranks: int
) -> tuple[Label, Fault]:
    """The first case of so many ranks with this cause at this scope alone, and its fault.

    Raises:
        InputError: the suite holds none.
    """
    for label in sorted(labels, key=lambda label: label.case_id):
        if label.verdict != "faulty" or len(label.faults) != 1:
            continue
        (fault,) = label.faults
        if (fault.cause, fault.locus.scope, len(label.topology.ranks)) != (cause, scope, ranks):
            continue
        if suite.case(label.case_id).info.workload.name == workload:
            return label, fault
    must = f"must hold a {workload} of {ranks} ranks with {cause} at one {scope}"
    raise InputError(must, where=suite.folder)


def introduce(case: Case) -> None:
    """Print which case it is and how much slower it runs."""
    click.echo(f"Case {case.info.id}: {case.info.title}.")
    click.echo(f"Its steps take {slowdown(case):.2f} times as long as in the reference run.\n")


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
