"""Options and set-up that are the same for all commands which ask one diagnoser about copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

import click

from cases.errors import InputError
from cases.schema import Split
from harness.commands.run import progress_bar
from harness.degrade.asking import Asking
from harness.judge import labels_folder
from harness.running import RunOptions
from harness.sandbox.level import choose_level
from harness.sandbox.limits import MIB, Limits
from harness.sandbox.worker import public_code
from harness.specs import parse_spec
from harness.summarising import Labelled

SPLITS = ("all", *get_args(Split))
PATH = click.Path(path_type=Path)
OPTIONS = (
    click.option("-d", "--diagnoser", "spec", required=True, help="As `evalharness run -d`."),
    click.option("--suite", default="recorded_cpu", show_default=True, help="Name or folder."),
    click.option("--labels", type=PATH, help="Folder of the labels, if not beside the corpus."),
    click.option(
        "--out",
        type=PATH,
        default=Path("results"),
        show_default=True,
        help="Where results folders go.",
    ),
    click.option(
        "--split",
        type=click.Choice(SPLITS),
        default="all",
        show_default=True,
        help="Only the cases of one split.",
    ),
    click.option(
        "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Cases at a time."
    ),
    click.option(
        "--isolation",
        type=click.Choice(["auto", "bwrap", "process"]),
        default="auto",
        show_default=True,
        help="How the diagnoser is kept from the labels.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        default=60.0,
        show_default=True,
        help="Seconds per case.",
    ),
    click.option(
        "--memory", type=click.IntRange(64), default=4096, show_default=True, help="MiB per case."
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Of all that is drawn."),
    click.option(
        "--digest",
        "declared",
        multiple=True,
        type=click.Path(exists=True, path_type=Path),
        help="Further file or folder that the diagnoser reads.",
    ),
)


def asking_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `asking` takes."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


@contextmanager
def asking(
    spec: str,
    suite: str,
    labels: Path | None,
    out: Path,
    split: str,
    jobs: int,
    isolation: Literal["auto", "bwrap", "process"],
    timeout: float,
    memory: int,
    seed: int,
    declared: tuple[Path, ...],
) -> Iterator[Asking]:
    """Open the suite, find the diagnoser and its isolation; yields what asks it.

    Raises:
        InputError: the split holds no case, or the oracle was named, which reads no case.
    """
    if spec == "oracle":
        raise InputError("must look at cases, which the oracle doesn't", where="-d", found=spec)
    labelled, found = Labelled.open(suite, labels), parse_spec(spec, declared)
    level, note = choose_level(isolation)
    if note:
        click.echo(f"evalharness: results will be unsealed: {note}", err=True)
    limits = Limits(timeout_s=timeout, memory_bytes=memory * MIB)
    with public_code() as code:
        options: dict[str, Any] = {"limits": limits, "jobs": jobs, "seed": seed}
        options["labels"] = labels_folder(labelled.suite.folder, labels)
        yield Asking(
            found,
            labelled,
            RunOptions(out, code, level, note, **options),
            chosen(labelled, split),
            progress_bar,
        )


def chosen(labelled: Labelled, split: str) -> tuple[str, ...]:
    """Return the ids of a split's cases; of all splits, those of cases without a label as well.

    Raises:
        InputError: there are none.
    """
    if split == "all":
        return labelled.suite.case_ids
    ids = [label.case_id for label in labelled.labels if label.split == split]
    if not ids:
        raise InputError("must hold cases", where=f"split {split}", found=labelled.suite.info.name)
    return tuple(sorted(ids))
