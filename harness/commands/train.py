"""`evalharness train`: train the bundled diagnosers that learn."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cases.bundle import Suite, find_suite
from cases.errors import InputError
from harness.judge import load_labels


@click.group("train")
def command() -> None:
    """Train a bundled diagnoser on the train split of a suite.

    Example: evalharness train forest --suite simulated_core
    """


@command.command("forest")
@click.option("--suite", default="simulated_core", show_default=True, help="Name or folder.")
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="Folder of the labels, if not beside the corpus.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("forest.skops"),
    show_default=True,
    help="File of the trained forest.",
)
def forest_command(suite: str, labels: Path | None, out: Path) -> None:
    """Grow a forest on the train split, choose its threshold on dev; public_test is not read.

    Example: evalharness train forest --suite simulated_core --out forest.skops
    """
    from harness.diagnosers.forest.model import save
    from harness.training.fit import fit
    from harness.training.samples import Sample, read_samples

    opened = Suite.open(find_suite(suite))
    known = load_labels(opened.folder, labels)

    def measured(split: str) -> list[Sample]:
        own = [label for label in known if label.split == split]
        with click.progressbar(length=len(own), label=f"{split} cases", file=sys.stderr) as bar:
            return read_samples(opened, own, lambda case: bar.update(1))

    train, dev = measured("train"), measured("dev")
    if not any(sample.label.faults for sample in train):
        must = "must have faulty training or inference cases in its train split"
        raise InputError(must, where=opened.folder, found=f"{len(train)} cases")
    forest = fit(train, dev, opened, lambda line: click.echo(line, err=True))
    save(forest, out)
    click.echo(
        f"{out}: {forest.cases} cases of {forest.suite_name}, {len(forest.scopes)} causes,"
        f" features {forest.feature_version}, threshold {forest.threshold},"
        f" {out.stat().st_size} bytes"
    )
    click.echo(f"evalharness run -d forest:{out} --suite {suite}")
