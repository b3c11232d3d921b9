"""`evalharness run` and `score`, end to end on a small suite."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

import harness
from harness.cli import cli
from harness.diagnosers import DIAGNOSERS, ORACLE
from harness.diagnosers.third_party import TOOLS
from harness.sandbox.level import why_no_bubblewrap
from harness.stored import read_stored

needs_bwrap = pytest.mark.skipif(why_no_bubblewrap() is not None, reason="no bubblewrap here")
HEALTHY = 'def diagnose(case):\n    return {"verdict": "healthy"}\n'
Evalharness = Callable[..., Result]


@pytest.fixture
def evalharness(tiny_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evalharness:
    """Run `evalharness run` in an empty folder; keyword `ok=False` expects a failure."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, command: str = "run", ok: bool = True) -> Result:
        track = ["--no-track"] if command == "run" else []
        given = [command, *arguments, "--suite", str(tiny_suite), *track]
        result = CliRunner().invoke(cli, given)
        if ok:
            assert result.exit_code == 0, result.output + repr(result.exception)
        return result

    return run


def answers(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]


@needs_bwrap
def test_run_writes_a_sealed_result(evalharness: Evalharness, tmp_path: Path) -> None:
    Path("mine.py").write_text(HEALTHY)
    shown = evalharness("-d", "mine.py:diagnose").stdout
    result = read_stored(tmp_path / "results" / "tiny" / "mine.py-diagnose")
    assert (result.summary.isolation.level, result.summary.isolation.sealed) == ("bwrap", True)
    assert result.run["isolation"]["reached"] == []
    assert result.summary.composition == {"faulty": 4, "healthy": 4, "undecidable": 1}
    assert result.summary.metrics["misled_rate"].value == 0
    outcomes = result.outcomes()
    assert list(outcomes.loc[outcomes["verdict"] == "healthy", "bucket"].unique()) == ["quiet"]
    for floor in ("silent", "constant", "random", "shotgun"):
        assert f"floor: {floor}" in shown
    assert "unsealed" not in shown


def test_json_and_text_tell_the_same(evalharness: Evalharness) -> None:
    Path("mine.py").write_text(HEALTHY)
    (summary,) = json.loads(evalharness("-d", "mine.py:diagnose", "--json").stdout)
    again = evalharness("results/tiny", command="score").stdout
    assert f"{summary['metrics']['recall_cause']['value']:.2f}" in again
    assert summary["timing"]["seconds_median"] > 0


def test_bundled_floor_answers_in_the_sandbox_as_in_the_table(evalharness: Evalharness) -> None:
    names = ("constant", "random", "shotgun", "silent")
    asked = [word for name in names for word in ("-d", name)]
    for summary in json.loads(evalharness(*asked, "--json").stdout):
        floor = summary["floors"][summary["diagnoser"]]
        assert {name: metric["value"] for name, metric in summary["metrics"].items()} == floor


def test_oracle_is_perfect_and_never_ranked(evalharness: Evalharness) -> None:
    (summary,) = json.loads(evalharness("-d", "oracle", "--json").stdout)
    found = {name: summary["metrics"][name]["value"] for name in summary["metrics"]}
    assert found["recall_cause_and_locus"] == found["precision_cause_and_locus"] == 1
    assert found["misled_rate"] == found["lost_fraction_error"] == 0
    assert found["abstained_informed_rate"] == 1
    assert not summary["ranked"] and not summary["isolation"]["sealed"]


def test_answers_are_used_again_until_the_code_changes(evalharness: Evalharness) -> None:
    folder = Path("results/tiny/mine")
    Path("mine.py").write_text(HEALTHY)
    evalharness("-d", "mine=mine.py:diagnose")
    first = answers(folder)
    evalharness("-d", "mine=mine.py:diagnose")
    assert answers(folder) == first
    Path("mine.py").write_text(HEALTHY + "# changed\n")
    evalharness("-d", "mine=mine.py:diagnose")
    assert len(answers(folder)) == 2 * len(first)
    assert len({line["key"] for line in answers(folder)}) == 2 * len(first)


def test_interrupted_run_goes_on_behind_its_torn_line(evalharness: Evalharness) -> None:
    folder = Path("results/tiny/mine")
    Path("mine.py").write_text(HEALTHY)
    evalharness("-d", "mine=mine.py:diagnose")
    whole = (folder / "answers.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    (folder / "answers.jsonl").write_bytes(b"".join(lines[:4]) + lines[4][:30])
    evalharness("-d", "mine=mine.py:diagnose")
    after = (folder / "answers.jsonl").read_bytes().splitlines(keepends=True)
    assert after[:4] == lines[:4]
    assert sorted(json.loads(line)["case"] for line in after) == sorted(
        json.loads(line)["case"] for line in lines
    )


def test_order_is_shuffled_by_the_seed(evalharness: Evalharness) -> None:
    Path("mine.py").write_text(HEALTHY)
    orders = []
    for seed in ("1", "2"):
        evalharness("-d", f"s{seed}=mine.py:diagnose", "--seed", seed)
        orders.append([line["case"] for line in answers(Path(f"results/tiny/s{seed}"))])
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    assert sorted(orders[0]) not in orders


def test_failures_are_answers_and_retrying_them_costs_the_rank(evalharness: Evalharness) -> None:
    flag = "import random\ndef diagnose(case):\n    raise RuntimeError\n"
    Path("mine.py").write_text(flag)
    (first,) = json.loads(evalharness("-d", "mine=mine.py:diagnose", "--json").stdout)
    assert first["outcomes"] == {"error": 9}
    assert first["metrics"]["failed_rate"]["value"] == 1
    evalharness("-d", "mine=mine.py:diagnose")
    assert len(answers(Path("results/tiny/mine"))) == 9
    (again,) = json.loads(
        evalharness("-d", "mine=mine.py:diagnose", "--retry-failed", "--json").stdout
    )
    assert len(answers(Path("results/tiny/mine"))) == 18
    assert (first["ranked"], again["ranked"]) == (True, False)


def test_invalid_answers_say_why(evalharness: Evalharness, tiny_ids: dict[str, str]) -> None:
    Path("mine.py").write_text(
        f"""
def diagnose(case):
    if case.info.id == {tiny_ids["loader_dev"]!r}:
        return {{"verdict": "faulty", "findings": [{{"cause": "gremlins"}}]}}
    if case.info.id == {tiny_ids["twin_dev"]!r}:
        return {{"verdict": "faulty"}}
    if case.info.id == {tiny_ids["twin_test"]!r}:
        return {{"verdict": "healthy", "confidence": float("nan")}}
    return {{"verdict": "healthy", "mood": 1}}
"""
    )
    (summary,) = json.loads(evalharness("-d", "mine=mine.py:diagnose", "--json").stdout)
    assert summary["outcomes"] == {"invalid": 3, "ok": 6}
    assert summary["ignored_keys"] == 6
    errors = {line["case"]: line.get("error") for line in answers(Path("results/tiny/mine"))}
    assert "gremlins" in errors[tiny_ids["loader_dev"]]
    assert "if and only if" in errors[tiny_ids["twin_dev"]]
    assert "finite" in errors[tiny_ids["twin_test"]]


def test_undeclared_signals_make_a_case_unsupported(
    evalharness: Evalharness, tiny_ids: dict[str, str]
) -> None:
    Path("mine.py").write_text('NEEDS = {"signals": ["loader"]}\n' + HEALTHY)
    (summary,) = json.loads(evalharness("-d", "mine=mine.py:diagnose", "--json").stdout)
    assert summary["outcomes"] == {"ok": 8, "unsupported": 1}
    lines = {line["case"]: line for line in answers(Path("results/tiny/mine"))}
    assert lines[tiny_ids["undecidable_test"]]["error"] == "the case has no loader"
    assert summary["metrics"]["coverage"]["value"] < 1


PROGRAM = """#!{python}
import json, os, sys
from pathlib import Path
folder = Path(sys.argv[-1])
case = json.loads((folder / "case.json").read_text())
answer = json.dumps({{"verdict": "healthy"}})
mode = sys.argv[1] if case["id"] == sys.argv[2] else "prints"
if mode == "file":
    print("chatter")
    Path(os.environ["EVALHARNESS_OUT"]).write_text(answer)
elif mode == "floods":
    for _ in range(1024):
        sys.stdout.write("x" * 2**20)
elif mode == "fails":
    print(answer)
    sys.exit("out of luck")
else:
    print(answer)
"""


@pytest.mark.parametrize(
    ("mode", "outcome", "error"),
    [
        ("prints", "ok", ""),
        ("file", "ok", ""),
        ("floods", "invalid", "at most 1048576 bytes"),
        ("fails", "error", "out of luck"),
    ],
)
def test_program_answers_by_file_or_output(
    evalharness: Evalharness,
    tmp_path: Path,
    tiny_ids: dict[str, str],
    mode: str,
    outcome: str,
    error: str,
) -> None:
    program = tmp_path / "tool"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    special = tiny_ids["loader_dev"]
    evalharness("-d", f"tool=cmd:{program} {mode} {special}", "--jobs", "2")
    lines = {line["case"]: line for line in answers(Path("results/tiny/tool"))}
    odd = lines.pop(special)
    assert odd["outcome"] == outcome
    assert error in odd.get("error", "")
    assert {line["outcome"] for line in lines.values()} == {"ok"}


def test_without_bubblewrap_results_are_unsealed_and_say_so(
    evalharness: Evalharness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    Path("mine.py").write_text(HEALTHY)
    result = evalharness("-d", "mine=mine.py:diagnose")
    assert "bubblewrap is not installed" in result.stderr
    assert "mine: unsealed" in result.stdout
    stored = read_stored(Path("results/tiny/mine"))
    assert (stored.summary.isolation.level, stored.summary.isolation.sealed) == ("process", False)
    assert {"labels", "earlier results"} <= set(stored.run["isolation"]["reached"])


def test_demanded_isolation_that_is_missing_is_the_harness_failing(tiny_suite: Path) -> None:
    given = ["run", "-d", "silent", "--isolation", "bwrap", "--suite", str(tiny_suite)]
    done = subprocess.run(
        [sys.executable, "-c", "from harness.cli import main; main()", *given],
        env=os.environ | {"PATH": "/nowhere"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "bubblewrap is not installed" in done.stderr


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("nobody", ", ".join([*DIAGNOSERS, *TOOLS, ORACLE])),
        ("absent.py:diagnose", "must be a Python file"),
        ("no_such_module:diagnose", "must be a module that can be found"),
        ("cmd:no-such-program", "must name a program"),
        ("broken.py:diagnose", "No module named 'absent_library'"),
        ("broken.py:other", "absent_library"),
    ],
)
def test_diagnoser_that_cannot_be_had_is_wrong_use(
    evalharness: Evalharness, spec: str, said: str
) -> None:
    Path("broken.py").write_text("import absent_library\n")
    result = evalharness("-d", spec, ok=False)
    assert said in str(result.exception)
    assert not Path("results/tiny").exists() or not list(
        Path("results/tiny").glob("*/summary.json")
    )


def test_file_of_answers_alone_is_judged(evalharness: Evalharness) -> None:
    Path("mine.py").write_text(HEALTHY)
    (summary,) = json.loads(evalharness("-d", "mine=mine.py:diagnose", "--json").stdout)
    shutil.copy("results/tiny/mine/answers.jsonl", "answers.jsonl")
    (judged,) = json.loads(evalharness("answers.jsonl", "--json", command="score").stdout)
    assert judged["metrics"] == summary["metrics"]
    Path("answers.jsonl").write_text(Path("answers.jsonl").read_text().split("\n", 1)[1])
    result = evalharness("answers.jsonl", command="score", ok=False)
    assert "must answer every case of tiny (1 have no answer)" in str(result.exception)


def test_scoring_again_repeats_the_result(evalharness: Evalharness) -> None:
    Path("mine.py").write_text(HEALTHY)
    evalharness("-d", "mine=mine.py:diagnose")
    folder = Path("results/tiny/mine")
    summary, outcomes = (
        (folder / "summary.json").read_bytes(),
        pd.read_parquet(folder / "outcomes.parquet"),
    )
    (folder / "summary.json").unlink()
    (folder / "outcomes.parquet").unlink()
    evalharness(str(folder), command="score")
    assert (folder / "summary.json").read_bytes() == summary
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "outcomes.parquet"), outcomes)


def test_altered_case_stops_the_run(evalharness: Evalharness, tiny_copy: Path) -> None:
    case = next(path for path in tiny_copy.iterdir() if path.is_dir())
    text = (case / "case.json").read_text()
    (case / "case.json").write_text(text.replace("Small language", "Large language"))
    given = ["run", "-d", "silent", "--suite", str(tiny_copy), "--no-track"]
    result = CliRunner().invoke(cli, given)
    assert "must have the digest" in str(result.exception)


def test_altered_label_stops_the_run(evalharness: Evalharness, tiny_copy: Path) -> None:
    label = next((tiny_copy.parents[1] / "labels" / "tiny").iterdir())
    label.write_text(label.read_text().replace('"seed"', '"sown"').replace('"scenario"', '"scene"'))
    given = ["run", "-d", "silent", "--suite", str(tiny_copy), "--no-track"]
    result = CliRunner().invoke(cli, given)
    assert "must be the digest of its cases, labels and taxonomy" in str(result.exception)


@needs_bwrap
@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root to drop")
def test_ordinary_user_gets_the_same_seal(tiny_suite: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_suite.parents[1], tmp_path / "suites")
    for path in (*tmp_path.rglob("*"), tmp_path, *tmp_path.parents):
        if path.is_dir() and path.is_relative_to(tmp_path.parents[-3]):
            path.chmod(path.stat().st_mode | 0o055)
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o777)
    mine = tmp_path / "mine.py"
    mine.write_text(HEALTHY)
    given = ["run", "-d", f"{mine}:diagnose", "--suite", str(tmp_path / "suites/corpus/tiny")]
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    libraries = [path for path in sys.path if path.endswith("-packages")]
    code = Path(harness.__file__).parents[1]
    if subprocess.run([*drop, python, "-c", ""]).returncode:
        pytest.skip(f"needs {python}, which every user may run")
    done = subprocess.run(
        [*drop, python, "-c", "from harness.cli import main; main()", *given,
         "--out", str(out), "--no-track", "--json", "--isolation", "bwrap"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(code), *libraries])},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["isolation"]["sealed"] is True
