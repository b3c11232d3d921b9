"""`evalharness diagnosers`: what can be asked, installing tools of others, starting an own one."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import click

from cases.errors import InputError
from harness.aligned import aligned
from harness.diagnosers import DIAGNOSERS
from harness.diagnosers.third_party import TOOLS
from harness.environments import environment_of, install

TEMPLATE = '''"""A diagnoser; run it with: evalharness run -d {file}:diagnose"""

NEEDS = {{"signals": ["steps"]}}


def diagnose(case):
    """Say what is wrong with one job, that nothing is, or that it cannot be told."""
    if case.reference is None:
        return {{"verdict": "abstain"}}
    slower = case.steps["duration_ns"].mean() / case.reference.steps["duration_ns"].mean()
    if slower < 1.05:
        return {{"verdict": "healthy", "confidence": 0.6}}
    waits = case.steps["data_wait_ns"].mean() - case.reference.steps["data_wait_ns"].mean()
    longer = case.steps["duration_ns"].mean() - case.reference.steps["duration_ns"].mean()
    if waits < 0.5 * longer:
        return {{"verdict": "abstain"}}
    return {{"verdict": "faulty", "findings": [{{"cause": "input_pipeline", "confidence": 0.6}}]}}
'''


@click.group("diagnosers")
def command() -> None:
    """List what can be asked, install tools of others, or start a diagnoser of your own.

    Example: evalharness diagnosers install gpu-idle
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_command(as_json: bool) -> None:
    """List bundled diagnosers and tools of others, and whether these are installed.

    `reads` is `trace` where a tool reads the profiler's traces itself, and `tables` where an
    adapter computes what it is given.

    Example: evalharness diagnosers list
    """
    bundled = [{"name": name, "about": found.about} for name, found in DIAGNOSERS.items()]
    tools = [_tool(name) for name in TOOLS]
    if as_json:
        form = "evalharness.diagnosers/1.0"
        click.echo(json.dumps({"format": form, "bundled": bundled, "tools": tools}, indent=1))
        return
    click.echo(aligned(("bundled", "about"), [(line["name"], line["about"]) for line in bundled]))
    click.echo()
    titles = ("tool", "release", "reads", "installed", "about")
    rows = [
        (t["name"], t["release"], t["reads"], "yes" if t["installed"] else "no", t["about"])
        for t in tools
    ]
    click.echo(aligned(titles, rows))


def _tool(name: str) -> dict[str, Any]:
    tool = TOOLS[name]
    adapter = importlib.import_module(tool.package).diagnose
    return {
        "name": name,
        "release": tool.release,
        "licence": tool.licence,
        "reads": tool.reads,
        "about": tool.about,
        "adapter_version": adapter.version,
        "needs": dict(adapter.needs),
        "causes": sorted(set(adapter.causes)),
        "installed": environment_of(name).ready,
    }


@command.command("install")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def install_command(names: tuple[str, ...]) -> None:
    """Make the environments of tools by NAME, or of `all`: pinned, checked by hash, in the cache.

    What is there is not made again.

    Example: evalharness diagnosers install gpu-idle pytscope
    """
    from harness.commands.record import bar

    chosen = tuple(TOOLS) if names == ("all",) else names
    for name in chosen:
        environment_of(name)
    for name in chosen:
        with bar() as shown:
            task = shown.add_task(name, total=1)

            def progress(
                doing: str, done: int, of: int, task: Any = task, name: str = name
            ) -> None:
                shown.update(task, description=f"{name}: {doing}", completed=done, total=of)

            environment = install(name, progress)
        click.echo(f"{name}: {environment.tool.release} in {environment.folder}")


@command.command("new")
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
def new_command(path: Path) -> None:
    """Write a small diagnoser to FILE, to be changed into one of your own.

    Example: evalharness diagnosers new mydiag.py
    """
    if path.suffix != ".py":
        raise InputError("must be a Python file", where="FILE", found=str(path))
    if path.exists():
        raise InputError("must not exist yet", where="FILE", found=str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEMPLATE.format(file=path.name))
    click.echo(f"{path}: evalharness run -d {path}:diagnose --suite recorded_cpu")
