"""`evalharness record`: break a job on purpose and record labelled cases."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cases.errors import ScenarioError
from injectors.scenario import Scenario, read_matrix, read_scenario


@click.command("record")
@click.argument("scenario", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--matrix", is_flag=True, help="The file is a matrix of many scenarios.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for corpus/<suite> and labels/<suite>.",
)
@click.option("--suite", help="Name of the suite; the file's name by default.")
@click.option("--only", multiple=True, help="Record only scenarios whose name holds this text.")
def command(
    scenario: Path, matrix: bool, out: Path, suite: str | None, only: tuple[str, ...]
) -> None:
    """Record SCENARIO as labelled cases: faulty, healthy twin, reference run.

    A finished scenario is not recorded again. What the label rule leaves grey is refused with
    its numbers, and the exit status is 1 when nothing of a scenario could be shipped.

    Example: evalharness record injectors/scenarios/slow_link.yaml --out recorded
    """
    from injectors.matrix import record_all

    scenarios = read_matrix(scenario) if matrix else [read_scenario(scenario)]
    if only:
        scenarios = [item for item in scenarios if any(text in item.name for text in only)]
    if not scenarios:
        raise ScenarioError("must name at least one scenario", where="--only", found=only)
    name = suite or scenario.stem
    with _bar() as bar:
        total = bar.add_task(f"{len(scenarios)} scenarios", total=len(scenarios))
        inner = bar.add_task("", total=1, visible=False)

        def begin(item: Scenario, known: bool) -> object:
            done = next(i for i, other in enumerate(scenarios) if other is item)
            bar.update(total, completed=done)
            bar.update(inner, description=item.name, visible=not known, completed=0)

            def progress(phase: str, done: int, of: int) -> None:
                bar.update(inner, description=f"{item.name}: {phase}", completed=done, total=of)

            return progress

        lines = record_all(scenarios, out, name, f"Recorded cases of {name}", begin)  # type: ignore[arg-type]
        bar.update(total, completed=len(scenarios))
    for line in lines:
        for case in line.made:
            click.echo(f"{line.scenario}: made {case}")
        for what, reason in line.refused.items():
            click.echo(f"refused {what}: {reason}")
    if not all(line.made for line in lines):
        raise SystemExit(1)


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
