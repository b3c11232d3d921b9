"""From a real run through MLflow to the leaderboard and the gate."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from harness.cli import cli


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False)


def test_run_track_rank_and_gate(tiny_suite: Path, own_store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = ("silent", "shotgun")
    asked = [part for name in names for part in ("-d", name)]
    run = call("run", *asked, "--suite", str(tiny_suite), "--out", str(out), "--track")
    assert run.exit_code == 0, run.output
    assert "not tracked" not in run.stderr

    (board,) = json.loads(call("leaderboard", "--suite", "tiny", "--json").stdout)["boards"]
    rows = {row["diagnoser"]: row for row in board["rows"] + board["apart"]}
    assert set(rows) == set(names)
    summaries = {name: json.loads((out / f"tiny/{name}/summary.json").read_text()) for name in rows}
    for name, row in rows.items():
        for metric, shown in row["metrics"].items():
            scored = summaries[name]["metrics"][metric]
            assert shown == {part: scored[part] for part in ("value", "low", "high")}, metric
    assert set(board["floors"]) == set(summaries["silent"]["floors"])

    policy = tmp_path / "gate.yaml"
    rules = "split: all\nbaseline: {max_newly_misled: 0}\n"
    policy.write_text(f"format: evalharness.policy/1.1\n{rules}")
    line = ["--policy", str(policy), "--baseline", "mlflow:silent", "--allow-unsealed", "--json"]
    gate = call("gate", str(out / "tiny/shotgun"), *line)
    assert gate.exit_code == 1
    rulings = {ruling["rule"]: ruling for ruling in json.loads(gate.stdout)["rulings"]}
    misled = summaries["shotgun"]["metrics"]["misled_rate"]
    newly = rulings["newly misled cases <= 0"]
    assert (newly["verdict"], int(newly["found"])) == ("stop", misled["value"] * misled["n"])
