"""Sending results to MLflow and asking it for them; the only module that imports mlflow."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from cases.errors import InputError
from harness.pictures.page import write_pictures
from harness.store import artifact_location, guard, public_uri, store_uri
from harness.stored import FILES, MORE_FILES, StoredResult, read_stored
from harness.tracked import (
    DATASET_DIGEST_LIMIT,
    TrackedRun,
    content_key,
    run_metrics,
    run_params,
    run_tags,
)

# Set before mlflow is imported and only where the user has not. A dead server must cost
# seconds, not MLflow's own 7 retries of 120 s.
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
}
CASE_TABLE, PICTURES = "cases.json", "pictures"
_BATCH = 100  # parameters MLflow takes in one request
_PAGE = 200  # runs asked for at once


class TrackingError(InputError):
    """MLflow is missing, unreachable, or refused what it was sent."""


@dataclass(frozen=True)
class TrackOutcome:
    """What became of one result: the MLflow run that holds it, new or updated in place."""

    run_id: str
    experiment: str
    uri: str
    created: bool


def experiment_name(suite: str) -> str:
    """Return the experiment of a suite.

    >>> experiment_name("recorded_cpu")
    'evalharness/recorded_cpu'
    """
    return f"evalharness/{suite}"


def track_results(folder: Path) -> TrackOutcome:
    """Send a results folder to MLflow; the same results again update the same run.

    Raises:
        InputError: the folder is not a finished result.
        TrackingError: the store did not take it; nothing on disk has changed.
    """
    result = read_stored(folder)
    with _client() as client:
        return _send(client, result)


def try_track(folder: Path) -> str | None:
    """Send a results folder; returns a warning that names the command to send it later.

    Raises:
        InputError: the folder is not a finished result.
    """
    try:
        track_results(folder)
    except TrackingError as error:
        later = f"evalharness track {shlex.quote(str(folder))}"
        return f"results are kept but not tracked: {error}. Send them later with: {later}"
    return None


def tracked_runs(suite: str) -> list[TrackedRun]:
    """Return every complete run of a suite, latest first.

    Raises:
        TrackingError: the store cannot be asked, or has never seen the suite.
    """
    with _client() as client:
        experiment = client.get_experiment_by_name(experiment_name(suite))
        if experiment is None:
            raise TrackingError(
                f"must hold the experiment {experiment_name(suite)} (send results with"
                " `evalharness track RESULTS`)",
                where=public_uri(store_uri()),
            )
        return list(_search(client, experiment.experiment_id, "tags.complete = 'true'"))


def fetch_results(run_id: str, into: Path) -> StoredResult:
    """Download the results folder of a run into the empty folder `into`.

    Raises:
        TrackingError: the store cannot be asked or does not hold the files.
    """
    with _client() as client:
        kept = {item.path for item in client.list_artifacts(run_id)}
        for name in (*FILES, *(name for name in MORE_FILES if name in kept)):
            client.download_artifacts(run_id, name, dst_path=str(into))
    return read_stored(into)


def fetch_alias(model: str, alias: str, into: Path) -> StoredResult:
    """Download the results of the run whose version of a registered model has an alias.

    Raises:
        TrackingError: the store cannot be asked, or knows no such alias.
    """
    with _client() as client:
        run_id = client.get_model_version_by_alias(model, alias).run_id
    if not run_id:
        must = "must be the alias of a version that was made from a run"
        raise TrackingError(must, where="MLflow", found=f"{model}@{alias}")
    return fetch_results(run_id, into)


def set_alias(run_id: str, model: str, alias: str) -> None:
    """Give a tracked run an alias: a version of the registered model `model` that has it.

    Raises:
        TrackingError: the store did not take it.
    """
    with _client() as client:
        if not client.search_registered_models(f"name = '{model}'"):
            client.create_registered_model(model)
        versions = client.search_model_versions(f"name = '{model}'")
        version = next((known.version for known in versions if known.run_id == run_id), None)
        if version is None:
            source = client.get_run(run_id).info.artifact_uri
            version = client.create_model_version(model, source, run_id).version
        client.set_registered_model_alias(model, alias, version)


def fetch_baseline(result: StoredResult, diagnoser: str, into: Path) -> StoredResult:
    """Download a diagnoser's latest run that `result` may be compared with, never itself.

    Raises:
        TrackingError: the store cannot be asked, or holds no such run.
    """
    suite, key = result.summary.suite, content_key(result)
    same = {name: getattr(result.summary, name) for name in ("suite_digest", "scoring_version")}
    runs = [run for run in tracked_runs(suite) if run.diagnoser == diagnoser]
    others = [run for run in runs if run.tags["content_key"] != key]
    for run in others:
        if same.items() <= run.tags.items():
            return fetch_results(run.run_id, into)
    raise TrackingError(
        f"must hold an earlier run of {diagnoser} on {suite} with {same}",
        where=f"MLflow at {public_uri(store_uri())}",
        found=[{name: run.tags.get(name) for name in same} for run in others],
    )


def _mlflow() -> ModuleType:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import mlflow
    except ModuleNotFoundError as error:
        raise TrackingError(
            f"must be installed to track results (pip install 'evalharness[track]'): {error}",
            where="mlflow",
        ) from None
    module: ModuleType = mlflow
    return module


@contextlib.contextmanager
def _client() -> Iterator[Any]:
    """Give a client of the store; whatever goes wrong inside is a TrackingError.

    Every kind of exception is meant: drivers of databases, HTTP and object stores each have
    their own, and none of them may cost the user the results on disk.
    """
    uri = store_uri()
    mlflow = _mlflow()
    try:
        with guard(uri), contextlib.redirect_stdout(sys.stderr):
            yield mlflow.MlflowClient(tracking_uri=uri)
    except InputError:
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0].replace(uri, public_uri(uri))
        raise TrackingError(
            f"must take and give results ({type(error).__name__}: {reason[:300]})",
            where=f"MLflow at {public_uri(uri)}",
        ) from error


def _send(client: Any, result: StoredResult) -> TrackOutcome:
    suite = result.summary.suite
    key = content_key(result)
    experiment_id = _experiment(client, suite)
    earlier = next(_search(client, experiment_id, f"tags.content_key = '{key}'"), None)
    tags = run_tags(result, key)
    if earlier is None:
        name = result.summary.diagnoser
        run_id = client.create_run(experiment_id, tags=tags, run_name=name).info.run_id
        known = {}
    else:
        run_id = earlier.run_id
        known = client.get_run(run_id).data.params
        client.log_batch(run_id, tags=[_mlflow().entities.RunTag(*pair) for pair in tags.items()])
    _log_params(client, run_id, run_params(result.run), known)
    _log_metrics(client, run_id, run_metrics(result), earlier.metrics if earlier else {})
    client.log_inputs(run_id, [_dataset(result)])
    _log_files(client, run_id, result)
    _log_pictures(client, run_id, result)
    # Last, so that a send which was cut short is never read as a result.
    client.set_tag(run_id, "complete", "true")
    client.set_terminated(run_id)
    uri = public_uri(store_uri())
    return TrackOutcome(run_id, experiment_name(suite), uri, created=earlier is None)


def _experiment(client: Any, suite: str) -> str:
    """Return the experiment's id; creates it, unless another process just has."""
    name = experiment_name(suite)
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        try:
            created: str = client.create_experiment(name, artifact_location(store_uri(), suite))
            return created
        except _mlflow().exceptions.MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            experiment = client.get_experiment_by_name(name)
    found: str = experiment.experiment_id
    return found


def _log_params(client: Any, run_id: str, params: dict[str, str], known: dict[str, str]) -> None:
    """Send the parameters that are not `known`: MLflow refuses to change one."""
    param = _mlflow().entities.Param
    entries = [param(*pair) for pair in params.items() if pair[0] not in known]
    for start in range(0, len(entries), _BATCH):
        client.log_batch(run_id, params=entries[start : start + _BATCH])


def _log_metrics(
    client: Any, run_id: str, metrics: dict[str, float], known: dict[str, float]
) -> None:
    """Send what differs from `known`: MLflow keeps a history of every value it is sent."""
    now_ms = time.time_ns() // 1_000_000
    new = [pair for pair in metrics.items() if known.get(pair[0]) != pair[1]]
    metric = _mlflow().entities.Metric
    entries = [metric(*pair, now_ms, 0) for pair in new]
    for start in range(0, len(entries), _BATCH):
        client.log_batch(run_id, metrics=entries[start : start + _BATCH])


def _dataset(result: StoredResult) -> Any:
    """Describe the suite as MLflow's dataset input."""
    entities = _mlflow().entities
    summary = result.summary
    source = {"suite": summary.suite, "digest": summary.suite_digest, "labels": summary.labels}
    dataset = entities.Dataset(
        name=summary.suite,
        digest=summary.suite_digest.removeprefix("sha256:")[:DATASET_DIGEST_LIMIT],
        source_type="code",
        source=json.dumps({"tags": source}),
        profile=json.dumps({"cases": summary.composition}),
    )
    context = entities.InputTag(key="mlflow.data.context", value="evaluation")
    return entities.DatasetInput(dataset, tags=[context])


def _log_files(client: Any, run_id: str, result: StoredResult) -> None:
    for name in (*FILES, *MORE_FILES):
        if (result.folder / name).is_file():
            client.log_artifact(run_id, str(result.folder / name))
    # `log_table` would append the same rows on a second send.
    table = result.outcomes().reset_index().to_json(orient="split", index=False)
    client.log_text(run_id, table, CASE_TABLE)
    shown = json.dumps([{"path": CASE_TABLE, "type": "table"}])
    client.set_tag(run_id, "mlflow.loggedArtifacts", shown)


def _log_pictures(client: Any, run_id: str, result: StoredResult) -> None:
    """Send the pictures where they can be drawn, and the data of each in any case."""
    title = f"{result.summary.diagnoser} on {result.summary.suite}"
    with tempfile.TemporaryDirectory(prefix="evalharness-") as folder:
        write_pictures(Path(folder), title, result.folder)
        client.log_artifacts(run_id, folder, PICTURES)


def _search(client: Any, experiment_id: str, where: str) -> Iterator[TrackedRun]:
    """Yield the runs of an experiment that satisfy `where`, latest first."""
    token = None
    while True:
        page = client.search_runs(
            [experiment_id],
            where,
            max_results=_PAGE,
            order_by=["start_time DESC"],
            page_token=token,
        )
        for run in page:
            info, data = run.info, run.data
            name = data.tags.get("diagnoser", info.run_name)
            yield TrackedRun(info.run_id, name, info.start_time, data.tags, data.metrics)
        token = page.token
        if not token:
            return
