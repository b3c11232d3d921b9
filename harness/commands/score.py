"""`evalharness score`: judge recorded answers again without running."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import click

from harness.evidence import read_checked
from harness.evidence_check import check_evidence
from harness.evidence_jobs import LIMITS, CheckOptions
from harness.evidence_view import evidence_rows, render_evidence
from harness.sandbox.level import choose_level
from harness.sandbox.limits import MIB, Limits
from harness.sandbox.worker import public_code
from harness.stored import find_stored
from harness.summarising import Labelled, answers_of, responses_of, summarise, timing
from harness.tables_view import render


@click.command()
@click.argument("results", type=click.Path(exists=True, path_type=Path))
@click.option("--suite", default="recorded_cpu", show_default=True, help="Name or folder.")
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="Folder of the labels, if not beside the corpus.",
)
@click.option("--evidence", is_flag=True, help="Check what findings cite, and show it.")
@click.option(
    "--evidence-timeout",
    type=click.FloatRange(0, min_open=True),
    default=LIMITS.timeout_s,
    show_default=True,
    help="Seconds per query, reading its tables included.",
)
@click.option(
    "--evidence-memory",
    type=click.IntRange(64),
    default=LIMITS.memory_bytes // MIB,
    show_default=True,
    help="MiB per query.",
)
@click.option(
    "--isolation",
    type=click.Choice(["auto", "bwrap", "process"]),
    default="auto",
    show_default=True,
    help="How queries are kept from the labels.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summaries as JSON.")
def command(
    results: Path,
    suite: str,
    labels: Path | None,
    evidence: bool,
    evidence_timeout: float,
    evidence_memory: int,
    isolation: Literal["auto", "bwrap", "process"],
    as_json: bool,
) -> None:
    """Judge recorded answers again without running.

    RESULTS is a results folder, a folder of them, or an answers.jsonl alone. Folders get
    their summary.json and tables anew; a file alone is only judged and printed.

    With --evidence every query that a finding cites is run, once, over its case and over a
    healthy one, in a process without labels; evidence.jsonl keeps the rulings.

    Example: evalharness score results/recorded_cpu --suite recorded_cpu
    """
    labelled = Labelled.open(suite, labels)
    folders = _folders(results)
    if evidence:
        if not folders:
            raise click.UsageError("--evidence must be given a results folder, not a file alone")
        limits = Limits(evidence_timeout, evidence_memory * MIB, LIMITS.scratch_bytes)
        _check(folders, labelled, limits, isolation)
    summaries = [summarise(folder, labelled) for folder in folders]
    summaries = summaries or [_judged(results, labelled)]
    shown = [_shown(folder, labelled) for folder in folders] if evidence else []
    if as_json:
        for summary, rows in zip(summaries, shown, strict=False):
            summary["evidence"]["pieces"] = rows
        click.echo(json.dumps(summaries, indent=1))
        return
    tables = [
        render_evidence(summary["diagnoser"], rows, summary["evidence"]["sealed"])
        for summary, rows in zip(summaries, shown, strict=False)
    ]
    click.echo("\n\n".join([render(summaries), *tables]))


def _folders(results: Path) -> list[Path]:
    """Return the results folders at or below a path, none if it is a file."""
    if results.is_file():
        return []
    return [results] if (results / "run.json").is_file() else find_stored(results)


def _check(
    folders: list[Path],
    labelled: Labelled,
    limits: Limits,
    isolation: Literal["auto", "bwrap", "process"],
) -> None:
    level, note = choose_level(isolation)
    if note:
        click.echo(f"evalharness: evidence will be checked unsealed: {note}", err=True)
    with public_code() as code:
        options = CheckOptions(code, level, limits, labelled.labels_folder)
        for folder in folders:
            check_evidence(folder, labelled.suite, answers_of(folder, labelled.suite), options)


def _shown(folder: Path, labelled: Labelled) -> list[dict[str, Any]]:
    answers = answers_of(folder, labelled.suite)
    return list(evidence_rows(answers, labelled.suite.info.cases, read_checked(folder) or {}))


def _judged(file: Path, labelled: Labelled) -> dict[str, Any]:
    """Judge a file of answers about whose run nothing is known."""
    answers = answers_of(file, labelled.suite)
    return {
        "suite": labelled.suite.info.name,
        "suite_digest": labelled.suite.info.digest,
        "diagnoser": file.stem,
        "isolation": {"level": "unknown", "sealed": False, "note": "how it ran is not known"},
        "ranked": False,
        **labelled.score(responses_of(answers)).summary(),
        "floors": labelled.floors,
        "timing": timing(list(answers.values())),
    }
