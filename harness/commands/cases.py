"""`evalharness cases`: build, list, show, check, audit and compare the cases of a suite."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

import click

from cases.bundle import Suite, find_suite
from cases.schema import Split
from harness.judge import Truth, load_truths

DEFAULT_SUITE = "recorded_cpu"


def out_option(folders: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the folder that a suite is made in."""
    return click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        help=f"Folder for suites/{folders} and labels/{folders}; the user's cache by default.",
    )


labels_option = click.option(
    "--labels-folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Labels, if they do not lie beside the suite's corpus.",
)


def suite_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all subcommands share."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
        labels_option,
        click.option("--suite", default=DEFAULT_SUITE, show_default=True, help="Name or folder."),
    ):
        function = option(function)
    return function


@click.group("cases")
def command() -> None:
    """Build, list, show, check and audit the cases of a suite, or compare what was recorded again.

    Example: evalharness cases list --suite recorded_cpu
    """


@command.command("build")
@click.argument("name", metavar="SUITE")
@click.option("--private-seed", type=click.IntRange(min=0), help="Make a suite nobody has seen.")
@out_option("SUITE")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; one a core by default.")
def build_command(name: str, private_seed: int | None, out: Path | None, jobs: int | None) -> None:
    """Build a simulated SUITE: simulated_core, simulated_fleet, simulated_smoke.

    Or one of your own: the YAML file of a matrix like injectors/scenarios/simulated.yaml.

    The content is the same on every machine and for every number of processes; what was finished
    before is not built again. With a private seed the suite is called SUITE_private, and its digest
    can be published before its labels.

    Example: evalharness cases build simulated_smoke
    """
    from cases.bundle import cache_folder
    from harness.commands.record import bar
    from injectors.suites import build, plan_of

    plan_of(name)
    with bar() as shown:
        task = shown.add_task("groups", total=1)

        def progress(phase: str, done: int, of: int) -> None:
            shown.update(task, description=phase, completed=done, total=of)

        info = build(name, out or cache_folder(), private_seed, jobs, progress)
    click.echo(f"{info.name}: {len(info.cases)} cases, {info.digest}")


@command.command("subset")
@click.argument("suite")
@click.option("--split", required=True, type=click.Choice(get_args(Split)), help="Its cases.")
@out_option("SUITE_SPLIT")
@labels_option
def subset_command(suite: str, split: str, out: Path | None, labels_folder: Path | None) -> None:
    """Make a suite of one split of SUITE, so that nobody need be asked about the rest.

    Example: evalharness cases subset simulated_core --split public_test
    """
    from cases.bundle import cache_folder
    from harness.judge import labels_folder as labels_of
    from injectors.subset import subset

    folder = find_suite(suite)
    info = subset(folder, labels_of(folder, labels_folder), split, out or cache_folder())
    click.echo(f"{info.name}: {len(info.cases)} cases, {info.digest}")


@command.command("import")
@click.argument("source", metavar="TRACES", type=click.Path(exists=True, path_type=Path))
@click.option("--name", default="imported", show_default=True, help="Suite that it is added to.")
@out_option("NAME")
@click.option(
    "--label",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML file that states what is wrong with the job.",
)
@click.option(
    "--reference",
    type=click.Path(exists=True, path_type=Path),
    help="Traces of an earlier healthy run of the same job.",
)
@click.option("--kind", type=click.Choice(["training", "inference"]), default="training")
@click.option("--title", default="", help="One line on the job that does not tell what is wrong.")
@click.option("--scrub", multiple=True, metavar="NAME", help="Host or user to take out.")
def import_command(
    source: Path,
    name: str,
    out: Path | None,
    label: Path | None,
    reference: Path | None,
    kind: Literal["training", "inference"],
    title: str,
    scrub: tuple[str, ...],
) -> None:
    """Make a case of profiler TRACES: a Kineto file, or a folder with one a rank.

    Paths, hosts, users and secrets are taken out, and times count from the first event. With a
    label the case can be scored (`evalharness run`); without one it can be asked about
    (`evalharness ask`). A label is what its author states: `cases check` says that nothing was
    measured.

    Example: evalharness cases import trace.json.gz --label known.yaml
    """
    from cases.bundle import cache_folder
    from cases.importing import ImportOptions
    from harness.imports import add_case

    options = ImportOptions(kind=kind, title=title, names=scrub)
    case_id, suite = add_case(source, out or cache_folder(), name, options, reference, label)
    click.echo(f"{suite.info.name}: case {case_id}, {len(suite.info.cases)} cases")


@command.command("list")
@click.option("--labels", "with_labels", is_flag=True, help="Tell verdict, causes and split, too.")
@suite_options
def list_command(suite: str, labels_folder: Path | None, as_json: bool, with_labels: bool) -> None:
    """List the cases; what the labels say only with --labels.

    Example: evalharness cases list --suite recorded_cpu --json
    """
    from harness.case_listing import list_case
    from harness.case_reports import list_text

    opened = Suite.open(find_suite(suite))
    truths = load_truths(opened.folder, labels_folder) if with_labels else {}
    lines = [list_case(opened, opened.case(c), truths.get(c)) for c in opened.case_ids]
    _print(as_json, "cases", {"suite": opened.info.name, "cases": lines}, lambda: list_text(lines))


@command.command("show")
@click.argument("case_id", metavar="CASE")
@click.option("--label", "with_label", is_flag=True, help="Show the label with its raw numbers.")
@suite_options
def show_command(
    case_id: str, suite: str, labels_folder: Path | None, as_json: bool, with_label: bool
) -> None:
    """Show one CASE: what it is, what was recorded, how slow it is; the label with --label.

    Example: evalharness cases show c1f2 --suite my_suite --label
    """
    from harness.case_listing import show_case
    from harness.case_reports import show_text

    opened = Suite.open(find_suite(suite))
    case = opened.case(case_id)
    truth: Truth | None = None
    if with_label:
        truth = load_truths(opened.folder, labels_folder)[case_id]
    document = show_case(case, truth)
    _print(as_json, "shown_case", document, lambda: show_text(document))


@command.command("check")
@suite_options
def check_command(suite: str, labels_folder: Path | None, as_json: bool) -> None:
    """Check digests, labels (from their raw samples), witnesses, twins and splits.

    Exit status 1 if anything does not hold.

    Example: evalharness cases check --suite recorded_cpu
    """
    from cases.taxonomy import Taxonomy
    from harness.case_reports import check_text
    from harness.checks import check_suite, composition

    folder = find_suite(suite)
    checks = check_suite(folder, Taxonomy.load(), labels_folder)
    counts = composition(load_truths(folder, labels_folder))
    passed = not any(check.failures for check in checks)
    document = {"passed": passed, "checks": [asdict(c) for c in checks], "composition": counts}
    _print(as_json, "checks", document, lambda: check_text(checks, counts))
    sys.exit(0 if passed else 1)


@command.command("audit")
@suite_options
def audit_command(suite: str, labels_folder: Path | None, as_json: bool) -> None:
    """Try to read the answers off words, trivia, single columns, slowness and names in traces.

    Exit status 1 if words or trivia give answers away.

    Example: evalharness cases audit --suite recorded_cpu
    """
    from cases.taxonomy import Taxonomy
    from harness.audit import audit_suite
    from harness.case_reports import audit_text

    audit = audit_suite(find_suite(suite), Taxonomy.load(), labels_folder)
    document = {"passed": audit.passed, **asdict(audit)}
    _print(as_json, "audit", document, lambda: audit_text(audit))
    sys.exit(0 if audit.passed else 1)


@command.command("repeat")
@click.argument("again", type=click.Path(exists=True, file_okay=False, path_type=Path))
@suite_options
def repeat_command(again: Path, suite: str, labels_folder: Path | None, as_json: bool) -> None:
    """Compare a suite with what its scenarios gave when they were recorded AGAIN.

    AGAIN is the folder that `record --out` was given. Exit status 1 if fewer than 90 % of the
    labels were accepted again with overlapping intervals.

    Example: evalharness cases repeat again --suite recorded_cpu
    """
    from harness.repeat import LEAST, repeat_text, repeated, share

    found = repeated(find_suite(suite), again, labels_folder)
    same, labels = share(found), [asdict(item) for item in found]
    passed = same >= LEAST
    document = {"passed": passed, "share": same, "labels": labels}
    _print(as_json, "repeated", document, lambda: repeat_text(found))
    sys.exit(0 if passed else 1)


def _print(as_json: bool, kind: str, document: dict[str, Any], text: Callable[[], str]) -> None:
    if as_json:
        click.echo(json.dumps({"format": f"evalharness.{kind}/1.0", **document}, indent=1))
    else:
        click.echo(text())
