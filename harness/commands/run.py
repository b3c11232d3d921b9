"""`evalharness run`: run diagnosers on a suite, score and track them."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click

from cases.errors import InputError
from harness.repeats import repeat_folder
from harness.results import FAILED, Answer
from harness.running import Progress, RunOptions, results_folder, run_diagnoser, run_oracle
from harness.sandbox.level import choose_level
from harness.sandbox.limits import MIB, Limits
from harness.sandbox.worker import public_code
from harness.specs import DiagnoserSpec, parse_spec
from harness.summarising import Labelled, summarise
from harness.tables_view import render


@click.command()
@click.option(
    "-d",
    "--diagnoser",
    "specs",
    multiple=True,
    required=True,
    help="Name, module:function, file.py:function, cmd:PROGRAM, or NAME=any of these.",
)
@click.option("--suite", default="recorded_cpu", show_default=True, help="Name or folder.")
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="Folder of the labels, if not beside the corpus.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Where results folders go.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Cases at a time; more blur the timings.",
)
@click.option(
    "--isolation",
    type=click.Choice(["auto", "bwrap", "process"]),
    default="auto",
    show_default=True,
    help="How diagnosers are kept from the labels.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds per case.",
)
@click.option(
    "--memory",
    type=click.IntRange(64),
    default=4096,
    show_default=True,
    help="MiB per case, all of its processes together.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Of the order of cases and of random floors.",
)
@click.option(
    "--digest",
    "declared",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Further file or folder that the diagnosers read, such as weights.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Ask about every case so often: how often do answers flip?",
)
@click.option("--network", is_flag=True, help="Leave the network in reach; never sealed.")
@click.option(
    "--retry-failed",
    is_flag=True,
    help="Ask again about cases that failed; the result is not ranked.",
)
@click.option(
    "--track/--no-track",
    default=None,
    help="Send results to MLflow [default: where it is installed].",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summaries as JSON.")
def command(
    specs: tuple[str, ...],
    suite: str,
    labels: Path | None,
    out: Path,
    jobs: int,
    isolation: Literal["auto", "bwrap", "process"],
    timeout: float,
    memory: int,
    seed: int,
    declared: tuple[Path, ...],
    repeats: int,
    network: bool,
    retry_failed: bool,
    track: bool | None,
    as_json: bool,
) -> None:
    """Run diagnosers on every case of a suite, score and track them.

    Answers already given by the same code under the same limits are used again. Results go
    to OUT/SUITE/DIAGNOSER.

    Example: evalharness run -d rules -d mydiag.py:diagnose --suite recorded_cpu
    """
    labelled = Labelled.open(suite, labels)
    check_labelled(labelled)
    level, note = choose_level(isolation)
    if note:
        click.echo(f"evalharness: results will be unsealed: {note}", err=True)
    found = [spec if spec == "oracle" else parse_spec(spec, declared) for spec in specs]
    names = Counter(spec if isinstance(spec, str) else spec.name for spec in found)
    if twice := [name for name, number in names.items() if number > 1]:
        must = "must have different names (write NAME=SPEC)"
        raise InputError(must, where="-d", found=twice[0])
    limits = Limits(timeout_s=timeout, memory_bytes=memory * MIB)
    folders = []
    with public_code() as code:
        options = RunOptions(
            out, code, level, note, limits, jobs, seed, network, retry_failed, labels
        )
        for spec in found:
            if isinstance(spec, str):
                folders.append(run_oracle(labelled.suite, labelled.labels, out))
                continue
            folders.append(_asked(spec, labelled, options, repeats))
    summaries = [summarise(folder, labelled) for folder in folders]
    click.echo(json.dumps(summaries, indent=1) if as_json else render(summaries))
    if track if track is not None else importlib.util.find_spec("mlflow") is not None:
        _track(folders)


def check_labelled(labelled: Labelled) -> None:
    """Refuse a suite with cases that nobody labelled.

    Raises:
        InputError: names them and says what can be done.
    """
    known = {label.case_id for label in labelled.labels}
    if strangers := [case for case in labelled.suite.case_ids if case not in known]:
        must = "must have a label for every case to be scored (evalharness ask only asks)"
        raise InputError(must, where=labelled.suite.info.name, found=strangers)


def _asked(spec: DiagnoserSpec, labelled: Labelled, options: RunOptions, repeats: int) -> Path:
    """Run a diagnoser, and again as often as asked for; returns the results folder."""
    folder = results_folder(options.out, labelled.suite, spec.name)
    for number in range(1, repeats + 1):
        own = folder if number == 1 else repeat_folder(folder, number)
        name = spec.name if number == 1 else f"{spec.name} ({number} of {repeats})"
        with progress_bar(name, len(labelled.labels)) as progress:
            run_diagnoser(spec, labelled.suite, labelled.labels, options, progress, own)
    return folder


def _track(folders: list[Path]) -> None:
    from harness.tracking import try_track

    for folder in folders:
        if warning := try_track(folder):
            click.echo(f"evalharness: {warning}", err=True)


@contextmanager
def progress_bar(name: str, total: int) -> Iterator[Progress]:
    """Show on standard error how far a run is, and what failed; yields what to call."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    console = Console(stderr=True)
    counts: Counter[str] = Counter()
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
        shown: Any = bar.add_task(name, total=total, note="")

        def progress(answer: Answer, reused: bool) -> None:
            counts["answered before"] += reused
            counts["failed"] += answer.outcome in FAILED
            note = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
            bar.update(shown, advance=1, note=note)

        yield progress
    note = "".join(f", {number} {what}" for what, number in counts.items() if number)
    click.echo(f"{name}: {total} cases{note}", err=True)
