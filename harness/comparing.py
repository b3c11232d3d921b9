"""Reading two results on one suite and comparing them, judged anew by the same rules."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cases.documents import read_json
from cases.errors import InputError
from harness.results import RUN
from harness.stored import find_stored, read_stored
from harness.summarising import Labelled, answers_of, responses_of
from harness.tracking import fetch_baseline
from scorers import Comparison, Scores, compare

MLFLOW = "mlflow:"
DEFAULT_SUITE = "recorded_cpu"


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two: what it is called, where it came from, and how it was judged.

    `sealed` is None where how it ran is not known.
    """

    diagnoser: str
    place: str
    sealed: bool | None
    scores: Scores


@dataclass(frozen=True, eq=False)
class Compared:
    """Two results on one suite and what came of comparing them."""

    labelled: Labelled
    a: Side
    b: Side
    outcome: Comparison


def compare_results(
    places: tuple[str, str], *, suite: str | None, labels: Path | None, margin: float
) -> Compared:
    """Judge two results anew and compare them.

    Args:
        places: Results folders, an answers.jsonl, or `mlflow:NAME` for one of the two.
        suite: Name or folder of the suite; None for the one that the results name.
        labels: Folder of the labels, None if beside the corpus.
        margin: The difference in net benefit that does not matter.

    Raises:
        InputError: a result cannot be read, or does not answer every case of the suite.
    """
    if not margin > 0:
        raise InputError("must be positive", where="--margin", found=margin)
    with tempfile.TemporaryDirectory(prefix="evalharness-compare-") as scratch:
        first, second = _folders(places, Path(scratch))
        labelled = Labelled.open(suite or _suite_of(first) or _suite_of(second) or "", labels)
        a = _side(first, places[0], labelled)
        b = _side(second, places[1], labelled)
    return Compared(labelled, a, b, compare(a.scores, b.scores, margin=margin))


def _folders(places: tuple[str, str], scratch: Path) -> tuple[Path, Path]:
    """Return where both lie; downloads the one that MLflow holds, chosen to fit the other."""
    tracked = [place.startswith(MLFLOW) for place in places]
    if all(tracked):
        must = "must name a results folder for at least one side, by which the other is chosen"
        raise InputError(must, where="compare", found=places)
    a, b = (None if fetch else _one(place) for fetch, place in zip(tracked, places, strict=True))
    if a is None and b is not None:
        a = fetch_baseline(read_stored(b), places[0].removeprefix(MLFLOW), scratch).folder
    elif b is None and a is not None:
        b = fetch_baseline(read_stored(a), places[1].removeprefix(MLFLOW), scratch).folder
    assert a is not None and b is not None
    return a, b


def _one(place: str) -> Path:
    """Return the one results folder at or below `place`, or the file of answers that it is."""
    path = Path(place)
    if path.is_file() or (path / RUN).is_file():
        return path
    found = find_stored(path)
    if len(found) > 1:
        names = ", ".join(str(folder.relative_to(path)) for folder in found)
        raise InputError(f"must be one results folder, holds {names}", where=path)
    return found[0]


def _suite_of(path: Path) -> str | None:
    """Return the suite that a results folder's summary names, None where there is none."""
    summary = path / "summary.json"
    if not summary.is_file():
        return DEFAULT_SUITE if path.is_file() else None
    document = read_json(summary)
    return document.get("suite") if isinstance(document, dict) else None


def _side(path: Path, place: str, labelled: Labelled) -> Side:
    run: dict[str, Any] = {}
    if path.is_dir():
        document = read_json(path / RUN)
        run = document if isinstance(document, dict) else {}
    answers = answers_of(path, labelled.suite)
    return Side(
        diagnoser=run.get("diagnoser", path.stem),
        place=place,
        sealed=run["isolation"]["sealed"] if "isolation" in run else None,
        scores=labelled.score(responses_of(answers)),
    )
