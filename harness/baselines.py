"""Where a baseline comes from: a results folder, or a run that MLflow keeps."""

from __future__ import annotations

from pathlib import Path

from cases.errors import InputError
from harness.stored import StoredResult, read_one
from harness.tracking import fetch_alias, fetch_baseline, fetch_results

MLFLOW, RUNS, MODELS = "mlflow:", "runs:/", "models:/"


def read_baseline(place: str, result: StoredResult, scratch: Path) -> StoredResult:
    """Read a baseline, downloading it into the empty folder `scratch` if MLflow keeps it.

    Args:
        place: A folder; `mlflow:DIAGNOSER`, its latest run that can be compared; `runs:/ID`, one
            run; `mlflow:DIAGNOSER@ALIAS` or `models:/MODEL@ALIAS`, the run that has the alias.
        result: What is judged.
        scratch: An empty folder.

    Raises:
        InputError: there is no such result.
    """
    if place.startswith(RUNS):
        return fetch_results(place.removeprefix(RUNS).strip("/"), scratch)
    if place.startswith(MODELS):
        model, alias = _split(place.removeprefix(MODELS), place)
        return fetch_alias(model, alias, scratch)
    if place.startswith(MLFLOW):
        name = place.removeprefix(MLFLOW)
        if "@" not in name:
            return fetch_baseline(result, name, scratch)
        diagnoser, alias = _split(name, place)
        return fetch_alias(model_name(result.summary.suite, diagnoser), alias, scratch)
    return read_one(Path(place))


def model_name(suite: str, diagnoser: str) -> str:
    """Return the registered model whose versions are a diagnoser's runs with an alias.

    >>> model_name("recorded_cpu", "mydiag")
    'evalharness.recorded_cpu.mydiag'
    """
    return f"evalharness.{suite}.{diagnoser}"


def _split(name: str, place: str) -> tuple[str, str]:
    model, _, alias = name.rpartition("@")
    if not model or not alias:
        raise InputError("must name an alias as NAME@ALIAS", where="--baseline", found=place)
    return model, alias
