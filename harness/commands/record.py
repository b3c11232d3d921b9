"""`evalharness record`: break a job on purpose and record labelled cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cases.errors import ScenarioError
from injectors.scenario import Scenario, read_matrix, read_scenario

if TYPE_CHECKING:
    from injectors.matrix import JournalLine

Callback = Callable[[str, int, int], None]


@click.command("record")
@click.argument("scenario", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--matrix", is_flag=True, help="The file is a matrix of many scenarios.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for corpus/<suite> and labels/<suite>.",
)
@click.option("--suite", help="Name of the suite; the file's name by default.")
@click.option(
    "--null-study",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Record nothing: time the healthy jobs against themselves, append to this file.",
)
@click.option(
    "--backend",
    type=click.Choice(["torch", "sim"]),
    default="torch",
    show_default=True,
    help="Run the job for real, or simulate it.",
)
@click.option("--only", multiple=True, help="Record only scenarios whose name holds this text.")
def command(
    scenario: Path,
    matrix: bool,
    out: Path | None,
    suite: str | None,
    null_study: Path | None,
    backend: str,
    only: tuple[str, ...],
) -> None:
    """Record SCENARIO as labelled cases: faulty, healthy twin, reference run.

    A finished scenario is not recorded again. What the label rule leaves grey is refused with
    its numbers, and the exit status is 1 when nothing of a scenario could be shipped.

    With --null-study nothing is broken: every scenario's healthy job is timed against itself
    until the file holds enough labels of each, and the tables of the study are printed.

    With --backend sim the same scenario is simulated: on the machine with GPUs that it names, or
    on CPUs. Costs are then exact differences of runs with the same seed.

    Example: evalharness record injectors/scenarios/slow_link.yaml --out recorded
    """
    if (out is None) == (null_study is None):
        raise click.UsageError("must be given either --out or --null-study")
    scenarios = read_matrix(scenario) if matrix else [read_scenario(scenario)]
    if only:
        scenarios = [item for item in scenarios if any(text in item.name for text in only)]
    if not scenarios:
        raise ScenarioError("must name at least one scenario", where="--only", found=only)
    if null_study is not None:
        _study(scenarios, null_study)
    elif out is not None and backend == "sim":
        _simulate(scenarios, out, suite or scenario.stem)
    elif out is not None:
        _record(scenarios, out, suite or scenario.stem)


def _study(scenarios: Sequence[Scenario], file: Path) -> None:
    from injectors.matrix import measure_nulls
    from injectors.null_study import faulty_table, healthy_table, strata

    with _shown(scenarios) as begin:
        found = strata(measure_nulls(scenarios, file, begin))
    click.echo(f"{faulty_table(found)}\n\n{healthy_table(found)}")


def _record(scenarios: Sequence[Scenario], out: Path, suite: str) -> None:
    from injectors.matrix import record_all

    with _shown(scenarios) as begin:
        title = f"Recorded cases of {suite}"
        lines = record_all(scenarios, out, suite, title, begin, partial(click.echo, err=True))
    _tell(lines)


def _simulate(scenarios: Sequence[Scenario], out: Path, suite: str) -> None:
    from injectors.building import build_groups
    from injectors.matrix import places
    from injectors.sim.backend import Group

    groups = [Group(item) for item in scenarios]
    target, title = places(out, suite), f"Simulated cases of {suite}"
    with bar() as shown:
        task = shown.add_task("groups", total=len(groups))

        def progress(phase: str, done: int, of: int) -> None:
            shown.update(task, description=phase, completed=done, total=of)

        _tell(build_groups(groups, target, suite, title, progress=progress))


def _tell(lines: Sequence[JournalLine]) -> None:
    """Print what became of each scenario; exit status 1 where one gave nothing."""
    for line in lines:
        for case in line.made:
            click.echo(f"{line.scenario}: made {case}")
        for what, reason in line.refused.items():
            click.echo(f"refused {what}: {reason}")
    if not all(line.made for line in lines):
        raise SystemExit(1)


@contextmanager
def _shown(scenarios: Sequence[Scenario]) -> Iterator[Callable[[Scenario, bool], Callback]]:
    """Show progress over the scenarios; yields what is called as each begins."""
    with bar() as shown:
        total = shown.add_task(f"{len(scenarios)} scenarios", total=len(scenarios))
        inner = shown.add_task("", total=1, visible=False)

        def begin(item: Scenario, known: bool) -> Callback:
            done = next(i for i, other in enumerate(scenarios) if other is item)
            shown.update(total, completed=done)
            shown.update(inner, description=item.name, visible=not known, completed=0)

            def progress(phase: str, done: int, of: int) -> None:
                shown.update(inner, description=f"{item.name}: {phase}", completed=done, total=of)

            return progress

        yield begin
        shown.update(total, completed=len(scenarios))


def bar() -> Progress:
    """A progress bar on standard error."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
