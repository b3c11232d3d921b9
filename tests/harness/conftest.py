"""A results folder made by hand, and a real MLflow server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cases.schema import JOB, Diagnosis, Fault, Finding, Interval, RankPlace, Topology
from cases.taxonomy import Taxonomy
from scorers import Label, Response, Scores, score

CASES = [f"case{number:02d}" for number in range(14)]
START_LIMIT_S = 60.0


def _label(number: int, split: str) -> Label:
    """Case 0 to 3 cost 30 % by their loader, 4 to 7 15 % by a link, 8 to 13 are healthy."""
    cause, lost = ("dataloader_cpu_bound", 0.3) if number < 4 else ("slow_link", 0.15)
    interval = Interval(value=lost, low=lost / 2, high=lost * 2)
    fault = Fault(cause=cause, locus=JOB, lost_fraction=interval)
    return Label(
        case_id=CASES[number],
        group=f"g{number:02d}",
        split=split,
        verdict="faulty" if number < 8 else "healthy",
        faults=(fault,) if number < 8 else (),
        decoys=(),
        candidates=(),
        missing_signals=(),
        topology=Topology(ranks=(RankPlace(rank=0, host="host0"),)),
    )


def _response(label: Label, misled: bool, wrong: bool) -> Response:
    cause = label.faults[0].cause if label.faults else ""
    blamed = "thermal_throttle" if misled else "" if wrong else cause
    said = (Finding(cause=blamed, locus=JOB, confidence=0.9),) if blamed else ()
    diagnosis = Diagnosis(verdict="faulty" if said else "healthy", findings=said)
    return Response(label.case_id, "ok", diagnosis, 0.1)


def _scores(misled: set[str], wrong: set[str], splits: dict[str, str]) -> Scores:
    """Eight faulty and six healthy cases in a group each, all answered rightly but some."""
    labels = [_label(number, splits.get(case, "dev")) for number, case in enumerate(CASES)]
    responses = {
        label.case_id: _response(label, label.case_id in misled, label.case_id in wrong)
        for label in labels
    }
    return score(labels, responses, Taxonomy.load())


@pytest.fixture
def make_results(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a results folder and returns its path."""

    def make(
        diagnoser: str = "rules",
        *,
        out: str = "out",
        misled: tuple[str, ...] = ("case00",),
        wrong: tuple[str, ...] = (),
        splits: dict[str, str] | None = None,
        metrics: dict[str, dict[str, Any]] | None = None,
        sealed: bool = True,
        jobs: int = 1,
        **changes: Any,
    ) -> Path:
        suite = "recorded_cpu"
        folder = tmp_path / out / suite / diagnoser
        folder.mkdir(parents=True)
        isolation = {"level": "bwrap" if sealed else "process", "sealed": sealed}
        share = len(misled) / 12
        scores = _scores(set(misled), set(wrong), splits or {})
        summary = {
            "format": "evalharness.summary/1.0",
            "suite": suite,
            "suite_digest": "sha256:" + "5" * 64,
            "scoring_version": "1.0",
            "diagnoser": diagnoser,
            "diagnoser_digest": "sha256:" + "d" * 64,
            "isolation": isolation,
            "labels": "public",
            "ranked": True,
            "composition": {"faulty": 8, "healthy": 6, "undecidable": 0},
            "metrics": scores.summary()["metrics"]
            | {
                "misled_rate": {
                    "value": share,
                    "low": share / 2,
                    "high": share + 0.1,
                    "n": 12,
                    "groups": 12,
                    "note": "",
                },
                "net_benefit_w1_reference": {"value": 0.1, "low": 0.05, "high": 0.15},
                "recall_cause": {"value": 0.875, "low": 0.5, "high": 0.97},
                "top1": {"value": 0.8, "low": None, "high": None, "note": "fewer than 6 groups"},
                **(metrics or {}),
            },
            "buckets": {"faults": {"found": 7, "misattributed": 1}, "healthy": {"quiet": 6}},
            "floors": {"silent": {"misled_rate": 0.0, "net_benefit_w1_reference": 0.0}},
            "seconds_per_case": {"median": 0.1},
        } | changes
        run = {
            "format": "evalharness.run/1.0",
            "spec": diagnoser,
            "key": "7" * 64,
            "jobs": jobs,
            "digests": {"suite": summary["suite_digest"], "code": summary["diagnoser_digest"]},
            "limits": {"time_s": 60, "memory_bytes": 2**31},
            "isolation": {**isolation, "canary": {"label": "unreachable"}},
            "seed": 0,
            "versions": {"evalharness": "0.1.0", "python": "3.11"},
        }
        (folder / "run.json").write_text(json.dumps(run))
        (folder / "summary.json").write_text(json.dumps(summary))
        lines = [json.dumps({"case_id": case, "misled": case in misled}) for case in CASES]
        (folder / "answers.jsonl").write_text("\n".join(lines) + "\n")
        scores.cases.to_parquet(folder / "outcomes.parquet")
        scores.faults.to_parquet(folder / "faults.parquet")
        scores.findings.to_parquet(folder / "findings.parquet")
        return folder

    return make


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the default store at an empty data folder; returns that folder."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "evalharness"


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real MLflow server on a free loopback port; yields its address."""
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    store = ["--backend-store-uri", f"sqlite:///{folder / 'server.db'}"]
    artifacts = ["--artifacts-destination", str(folder / "artifacts")]
    place = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *store, *artifacts, *place],
            env=os.environ | quiet,
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _await(address, server, folder / "server.log")
        yield address
    finally:
        os.killpg(server.pid, signal.SIGTERM)  # the worker is a process of its own
        server.wait(timeout=30)


def _await(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the MLflow server did not start: {log.read_text()[-2000:]}")
