from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from cases.errors import InputError
from harness.cli import cli
from harness.stored import read_stored
from harness.tracking import TrackingError, fetch_results, track_results, tracked_runs, try_track

MakeResults = Callable[..., Path]
EVALHARNESS = [sys.executable, "-c", "from harness.cli import main; main()"]


@pytest.fixture
def server(mlflow_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_server)
    return mlflow_server


def test_server_holds_params_metrics_tags_and_dataset(
    make_results: MakeResults, server: str
) -> None:
    import mlflow

    outcome = track_results(make_results())
    run = mlflow.MlflowClient(tracking_uri=server).get_run(outcome.run_id)

    assert (outcome.created, outcome.experiment) == (True, "evalharness/recorded_cpu")
    assert (run.info.run_name, run.info.status) == ("rules", "FINISHED")
    assert run.data.params["limits.time_s"] == "60"
    assert run.data.params["isolation.canary.label"] == "unreachable"
    assert run.data.metrics["misled_rate"] == pytest.approx(1 / 12)
    assert run.data.metrics["misled_rate_low"] == pytest.approx(1 / 24)
    assert run.data.metrics["misled_rate_high"] == pytest.approx(1 / 12 + 0.1)
    assert run.data.metrics["floor/silent/misled_rate"] == 0
    assert run.data.metrics["bucket/faults/found"] == 7
    assert "top1_low" not in run.data.metrics, "what was not computed must not become a number"
    assert run.data.tags["sealed"] == "true"
    assert run.data.tags["suite_digest"] == "sha256:" + "5" * 64
    (used,) = run.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == ("recorded_cpu", "5" * 36)


def test_server_gives_the_files_back(
    make_results: MakeResults, server: str, tmp_path: Path
) -> None:
    import mlflow

    folder = make_results("fetched")
    run_id = track_results(folder).run_id
    into = tmp_path / "back"
    into.mkdir()
    back = fetch_results(run_id, into)
    pd.testing.assert_frame_equal(back.outcomes(), read_stored(folder).outcomes())
    assert (into / "answers.jsonl").read_bytes() == (folder / "answers.jsonl").read_bytes()
    client = mlflow.MlflowClient(tracking_uri=server)
    table = json.loads(Path(client.download_artifacts(run_id, "cases.json")).read_text())
    assert len(table["data"]) == 14


def test_same_results_twice_are_one_run(make_results: MakeResults, server: str) -> None:
    import mlflow

    folder = make_results("twice")
    first = track_results(folder)
    summary = json.loads((folder / "summary.json").read_text())
    summary["metrics"]["misled_rate"]["value"] = 0.05
    (folder / "summary.json").write_text(json.dumps(summary))
    second = track_results(folder)

    assert (second.run_id, second.created) == (first.run_id, False)
    runs = [run for run in tracked_runs("recorded_cpu") if run.diagnoser == "twice"]
    assert [run.metric("misled_rate").value for run in runs] == [0.05]
    client = mlflow.MlflowClient(tracking_uri=server)
    assert len(client.get_metric_history(first.run_id, "recall_cause")) == 1
    table = json.loads(Path(client.download_artifacts(first.run_id, "cases.json")).read_text())
    assert len(table["data"]) == 14


def test_a_resumed_run_with_other_jobs_is_the_same_run(
    make_results: MakeResults, server: str
) -> None:
    first = track_results(make_results("resumed", out="a", jobs=1))
    second = track_results(make_results("resumed", out="b", jobs=4))
    assert (second.run_id, second.created) == (first.run_id, False)


def test_other_answers_are_another_run(make_results: MakeResults, server: str) -> None:
    ids = {track_results(make_results("other", out=out)).run_id for out in ("a", "b")}
    assert len(ids) == 1, "the place of the results is not part of what they are"
    changed = make_results("other", out="c", misled=("case01",))
    assert track_results(changed).run_id not in ids


def test_half_sent_run_is_no_result(make_results: MakeResults, own_store: Path) -> None:
    folder = make_results()
    track_results(folder)
    with sqlite3.connect(own_store / "mlflow.db") as database:
        database.execute("delete from tags where key = 'complete'")
    assert tracked_runs("recorded_cpu") == []
    assert track_results(folder).created is False
    assert len(tracked_runs("recorded_cpu")) == 1


def test_default_store_keeps_artifacts_beside_it(
    make_results: MakeResults, own_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_id = track_results(make_results()).run_id
    assert (own_store / "mlflow.db").is_file()
    assert list(own_store.glob(f"artifacts/recorded_cpu/{run_id}/artifacts/outcomes.parquet"))
    assert not (tmp_path / "mlruns").exists()


def test_four_first_runs_at_once(make_results: MakeResults, own_store: Path) -> None:
    folders = [make_results(name) for name in ("one", "two", "three", "four")]
    processes = [
        subprocess.Popen(
            [*EVALHARNESS, "track", str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for folder in folders
    ]
    ends = [(*process.communicate(timeout=120), process.returncode) for process in processes]
    assert [code for *_, code in ends] == [0] * 4, ends
    assert [error for _, error, _ in ends] == [""] * 4, "MLflow's own noise must be silenced"
    assert all(output.startswith("sent  ") and output.count("\n") == 1 for output, *_ in ends)
    names = {run.diagnoser for run in tracked_runs("recorded_cpu")}
    assert names == {"one", "two", "three", "four"}


def test_dead_server_keeps_results_and_names_the_command(
    make_results: MakeResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://me:secret@127.0.0.1:{probe.getsockname()[1]}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    folder = make_results("with space")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    warning = try_track(folder)
    assert warning is not None
    assert f"evalharness track '{folder}'" in warning
    assert "secret" not in warning
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_silent_server_costs_bounded_time(
    make_results: MakeResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.create_server(("127.0.0.1", 0)) as server:  # accepts, never answers
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{server.getsockname()[1]}")
        start = time.monotonic()
        assert try_track(make_results()) is not None
        assert time.monotonic() - start < 15


def test_missing_mlflow_names_the_extra(
    make_results: MakeResults, own_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(TrackingError, match=r"pip install 'evalharness\[track\]'"):
        track_results(make_results())


def test_track_command_finds_all_results_below_a_folder(
    make_results: MakeResults, own_store: Path
) -> None:
    out = make_results("a").parents[1]
    make_results("b")
    result = CliRunner().invoke(cli, ["track", str(out), "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert [Path(run["results"]).name for run in document["runs"]] == ["a", "b"]
    assert all(run["created"] for run in document["runs"])


def test_unfinished_results_are_refused(make_results: MakeResults, own_store: Path) -> None:
    folder = make_results()
    (folder / "outcomes.parquet").unlink()
    with pytest.raises(InputError, match=r"found 'no outcomes\.parquet'"):
        try_track(folder)


def test_only_tracking_imports_mlflow() -> None:
    program = (
        "import sys, harness.tracking, harness.commands.track;"
        "print([name for name in ('mlflow', 'torch') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"
