"""Putting one simulated case to two tools that others wrote, and settling whom to believe."""

from __future__ import annotations

import contextlib
import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from cases.bundle import Suite
from cases.errors import InputError
from cases.taxonomy import Taxonomy
from harness.cli import cli
from harness.diagnosers.third_party import TOOLS
from harness.environments import environment_of, install
from harness.judge import load_labels
from harness.told import place
from harness.walks import case_of, compare, growth, introduce

NAMES = ("fournex", "datapath-doctor")  # small enough to be installed on the way
CAUSE, WORKLOAD, RANKS = "worker_respawn_each_epoch", "recommender", 16

IN_TRACE = """
SELECT avg(duration_ns) FILTER (traced) / 1e6 AS step_in_trace_ms,
       avg(duration_ns) FILTER (NOT traced) / 1e6 AS other_step_ms,
       max(data_wait_ns) / 1e6 AS longest_wait_for_data_ms
FROM (SELECT *, 'ProfilerStep#' || step IN (SELECT name FROM {run}trace_events) AS traced
      FROM {run}steps WHERE step > 0)"""
WORKERS = """
SELECT count(DISTINCT process) AS loader_workers
FROM {run}processes WHERE role = 'loader_worker'"""

Told = dict[str, Any]


def two_tools(folder: Path) -> None:
    """Ask two tools about loader workers that start anew with each epoch, and see who is right."""
    suite = Suite.open(folder)
    label, fault = case_of(load_labels(folder), suite, CAUSE, "job", WORKLOAD, RANKS)
    case = suite.case(label.case_id)

    introduce(case)
    answers = ask(folder, label.case_id) if installed() else {}
    for name, told in answers.items():
        click.echo(f"{TOOLS[name].release} (reads {TOOLS[name].reads}) {said(told)}")
    if disagree(answers):
        click.echo("They disagree. Whom to believe?")
    click.echo("A trace holds few of a job's steps. Compare these with all others:")
    compare(case, IN_TRACE)
    traced, others, wait = growth(case, IN_TRACE)
    click.echo(
        f"Steps in the trace take {traced:.2f} times as long as before, so kernels start as they"
        f" did. The others take {others:.1f} times as long on average, and the longest wait for"
        f" data is {wait:.0f} times as long. Who loads it?"
    )
    compare(case, WORKERS)
    (workers,) = growth(case, WORKERS)
    click.echo(
        f"There were {workers:.0f} times as many workers, each for a part of the run: they are"
        " started again and again, and steps wait for that."
    )
    for name, told in answers.items():
        click.echo(f"{name} is scored {scored(told)}")
    family = " / ".join(reversed(Taxonomy.load().ancestors(fault.cause)))
    click.echo(
        f"\nThe label: {fault.cause} (in {family}) at {place(fault.locus)}, which costs exactly"
        f" {fault.lost_fraction.value:.1%} of the job's time:\nthe same seeds were simulated with"
        " it and without."
    )


def installed() -> bool:
    """Install both tools unless they are, side by side; says so where that can't be done."""
    missing = [name for name in NAMES if not environment_of(name).ready]
    if missing:
        click.echo(f"Installing {' and '.join(missing)}, each in an environment of its own ...")
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(install, missing))
    except InputError as error:
        why = error.must.removeprefix("must be installable, but ").partition(" (")[0]
        click.echo(f"This can't be done here ({why}), so the case follows without their answers.")
        return False
    return True


def ask(folder: Path, case_id: str) -> dict[str, Told]:
    """Return what each tool says of a case now, judged; see `evalharness ask --json`."""
    answers = {}
    for name in NAMES:
        command = ["ask", "-d", name, "--suite", str(folder), "--case", case_id, "--json"]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            cli.main(command, standalone_mode=False)
        answers[name] = json.loads(printed.getvalue())
    return answers


def disagree(answers: dict[str, Told]) -> bool:
    """Whether what one of them is surest of is not what the other is."""
    surest = [told["blamed"][0]["cause"] for told in answers.values() if told["blamed"]]
    return len(set(surest)) > 1


def said(told: Told) -> str:
    """Tell an answer.

    >>> said({"blamed": [], "answered": "healthy"})
    'says healthy'
    """
    if not told["blamed"]:
        return f"says {told['answered'] or 'nothing: ' + told['outcome']}"
    return " and ".join(
        f"blames {one['cause']} at {one['place']}, confidence {one['confidence']:.2f}"
        for one in told["blamed"]
    )


def scored(told: Told) -> str:
    """Name what became of the only fault, and how false findings mislead.

    >>> scored({"true": [{"bucket": "misattributed"}], "blamed": [{"kind": "other"}]})
    'misattributed (other)'
    """
    kinds = [one["kind"] for one in told["blamed"] if one["kind"]]
    return str(told["true"][0]["bucket"]) + (f" ({', '.join(kinds)})" if kinds else "")
