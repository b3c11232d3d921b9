"""Evidence for real: adversaries that cite what proves nothing, and queries that run away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from cases.bundle import Suite
from cases.schema import Diagnosis, Evidence, Finding
from harness import evidence_check, judge
from harness.cli import cli
from harness.evidence import MOST_PER_CASE, Checked, claim_key, read_checked
from harness.evidence_check import check_evidence
from harness.evidence_jobs import CheckOptions
from harness.results import Answer
from harness.sandbox.level import Level, why_no_bubblewrap
from harness.sandbox.limits import MIB, Limits
from harness.sandbox.worker import public_code

SHORT_S = 2.0
LIMITS = Limits(timeout_s=60.0, memory_bytes=600 * MIB, scratch_bytes=64 * MIB)
needs_bwrap = pytest.mark.skipif(why_no_bubblewrap() is not None, reason="no bubblewrap here")
LEVELS = [pytest.param("bwrap", marks=needs_bwrap), "process"]
CPU = "SELECT avg(cpu_ns) FROM loader"
GROWTH = "SELECT avg(cpu_ns) / (SELECT avg(cpu_ns) FROM reference.loader) FROM loader"
# Fourteen times six events: 8e10 rows.
JOIN = "SELECT sum(t0.start_ns % 7) FROM " + ", ".join(f"trace_events t{i}" for i in range(14))
HOARD = "SELECT len(list(a.range * b.range)) FROM range(100000) a, range(100000) b"


@pytest.fixture(scope="module")
def code() -> Iterator[Path]:
    with public_code() as folder:
        yield folder


@pytest.fixture
def options(code: Path) -> CheckOptions:
    return CheckOptions(code, "process", LIMITS)


def cites(case: str, *claims: Evidence) -> Answer:
    finding = Finding(cause="dataloader_cpu_bound", evidence=claims)
    diagnosis = Diagnosis(verdict="faulty", findings=(finding,))
    return Answer(case=case, key="k", outcome="ok", diagnosis=diagnosis)


def rulings(
    folder: Path, suite: Path, case: str, claims: list[Evidence], options: CheckOptions
) -> list[Checked]:
    opened = Suite.open(suite)
    check_evidence(folder, opened, {case: cites(case, *claims)}, options)
    checked = read_checked(folder) or {}
    return [checked[claim_key(opened.info.cases[case], claim)] for claim in claims]


@pytest.mark.parametrize("level", LEVELS)
def test_rulings_on_a_faulty_case(
    tiny_suite: Path, tiny_ids: dict[str, str], tmp_path: Path, options: CheckOptions, level: Level
) -> None:
    case = Suite.open(tiny_suite).case(tiny_ids["loader_train"])
    cpu_ns = float(case.loader["cpu_ns"].mean())
    growth = cpu_ns / float(case.reference.loader["cpu_ns"].mean())  # type: ignore[union-attr]
    wanted = {
        Evidence(sql=CPU, value=cpu_ns): "supported",
        Evidence(sql=CPU, value=1.04 * cpu_ns): "supported",
        Evidence(sql=CPU, value=1.1 * cpu_ns, tolerance=0.5): "not_true",
        Evidence(sql=GROWTH, value=growth): "supported",
        Evidence(sql="SELECT 1", value=1): "also_on_twin",
        Evidence(sql="SELECT 1=1", value=1): "also_on_twin",
        Evidence(sql="SELECT count(DISTINCT rank) FROM steps", value=2): "also_on_twin",
        Evidence(sql="SELECT avg(x) FROM (SELECT 1 AS x WHERE false)", value=0): "not_true",
        Evidence(sql="SELECT 1 / 0", value=1): "not_true",  # null or infinite: no number
        Evidence(sql="SELECT random()", value=0.5): "refused",
        Evidence(sql="SELECT count(*) FROM '/etc/passwd'", value=20): "refused",
        Evidence(sql="SELECT count(*) FROM duckdb_settings()", value=100): "refused",
        Evidence(sql="SELECT 1; SELECT 1", value=1): "refused",
        Evidence(sql="SELEC 1", value=1): "failed",
        Evidence(sql="SELECT nothing FROM steps", value=1): "failed",
        Evidence(sql="SELECT step FROM steps", value=1): "failed",  # not one number
        Evidence(sql="SELECT 1, 2", value=1): "failed",
        Evidence(sql="SELECT 'one'", value=1): "failed",
    }
    options = replace(options, level=level)
    lines = rulings(tmp_path, tiny_suite, tiny_ids["loader_train"], list(wanted), options)
    assert [line.ruling for line in lines] == list(wanted.values())
    assert lines[0].here == pytest.approx(cpu_ns)
    assert lines[0].against == "twin"
    assert lines[0].there == pytest.approx(cpu_ns / 4, rel=0.1)
    assert {line.sealed for line in lines} == {level == "bwrap"}


@pytest.mark.parametrize("level", LEVELS)
def test_what_runs_away_is_killed_at_the_limit(
    tiny_suite: Path, tiny_ids: dict[str, str], tmp_path: Path, options: CheckOptions, level: Level
) -> None:
    """DuckDB's own interrupt and memory limit hold neither; the parent's do."""
    options = replace(options, level=level)
    short = replace(options, limits=replace(LIMITS, timeout_s=SHORT_S))
    case = tiny_ids["loader_train"]
    (line,) = rulings(tmp_path, tiny_suite, case, [Evidence(sql=JOIN, value=1)], short)
    assert line.ruling == "timeout"
    assert SHORT_S <= float(line.why.split()[1]) < 3 * SHORT_S
    claims = [Evidence(sql=HOARD, value=1e10), Evidence(sql=CPU, value=8e6)]
    lines = rulings(tmp_path, tiny_suite, case, claims, options)
    assert [line.ruling for line in lines] == ["out_of_memory", "supported"]


def test_nothing_supports_a_finding_on_a_healthy_case(
    tiny_suite: Path, tiny_ids: dict[str, str], tmp_path: Path, options: CheckOptions
) -> None:
    claims = [Evidence(sql=CPU, value=2e6), Evidence(sql=CPU, value=8e6)]
    lines = rulings(tmp_path, tiny_suite, tiny_ids["decoy_test"], claims, options)
    assert [(line.ruling, line.against) for line in lines] == [
        ("also_on_twin", "itself"),
        ("not_true", "itself"),
    ]


@pytest.mark.parametrize(
    ("role", "against", "ruling"),
    [("loader_train", "reference", "supported"), ("twin_train", "reference", "also_on_twin")],
)
def test_without_a_twin_the_reference_run_stands_for_it(
    tiny_suite: Path,
    tiny_ids: dict[str, str],
    tmp_path: Path,
    options: CheckOptions,
    monkeypatch: pytest.MonkeyPatch,
    role: str,
    against: str,
    ruling: str,
) -> None:
    monkeypatch.setattr(judge, "healthy_counterparts", lambda *_: dict.fromkeys(tiny_ids.values()))
    value = float(Suite.open(tiny_suite).case(tiny_ids[role]).loader["cpu_ns"].mean())
    (line,) = rulings(
        tmp_path, tiny_suite, tiny_ids[role], [Evidence(sql=CPU, value=value)], options
    )
    assert (line.against, line.ruling) == (against, ruling)


def test_without_twin_and_reference_nobody_knows(
    tiny_suite: Path,
    tiny_ids: dict[str, str],
    tmp_path: Path,
    options: CheckOptions,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = tiny_ids["loader_train"]
    value = float(Suite.open(tiny_suite).case(case).loader["cpu_ns"].mean())
    monkeypatch.setattr(judge, "healthy_counterparts", lambda *_: dict.fromkeys(tiny_ids.values()))
    monkeypatch.setattr(Suite, "case", lambda *_: SimpleNamespace(reference=None))
    claims = [Evidence(sql=CPU, value=value), Evidence(sql=CPU, value=1.0)]
    lines = rulings(tmp_path, tiny_suite, case, claims, options)
    assert [(line.ruling, line.against) for line in lines] == [
        ("unknown", "nothing"),
        ("not_true", "nothing"),
    ]


def test_a_claim_is_checked_once(
    tiny_suite: Path,
    tiny_ids: dict[str, str],
    tmp_path: Path,
    options: CheckOptions,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case, claim = tiny_ids["loader_train"], Evidence(sql=CPU, value=8e6)
    rulings(tmp_path, tiny_suite, case, [claim], options)
    before = (tmp_path / "evidence.jsonl").read_bytes()
    with monkeypatch.context() as patched:
        patched.delattr(evidence_check, "Worker")  # nothing may be started
        rulings(tmp_path, tiny_suite, case, [claim], options)
        with pytest.raises(NameError):
            rulings(tmp_path, tiny_suite, case, [claim.model_copy(update={"value": 7e6})], options)
    assert (tmp_path / "evidence.jsonl").read_bytes() == before
    other = replace(options, limits=replace(LIMITS, timeout_s=50.0))
    rulings(tmp_path, tiny_suite, case, [claim], other)
    assert len((tmp_path / "evidence.jsonl").read_text().splitlines()) == 2


def test_only_so_many_pieces_a_case_are_looked_at(
    tiny_suite: Path, tiny_ids: dict[str, str], tmp_path: Path, options: CheckOptions
) -> None:
    claims = [Evidence(sql="SELECT 1", value=1 + i) for i in range(MOST_PER_CASE + 2)]
    for _ in range(2):  # what was too much stays too much
        lines = rulings(tmp_path, tiny_suite, tiny_ids["loader_train"], claims, options)
        assert [line.ruling for line in lines[-3:]] == ["not_true", "refused", "refused"]


DIAGNOSERS = """
CPU = "SELECT avg(cpu_ns) FROM loader"

def found(case, evidence):
    finding = {"cause": "dataloader_cpu_bound", "evidence": evidence}
    grown = case.has("loader") and case.sql(CPU).iloc[0, 0] > 5e6
    return {"verdict": "faulty", "findings": [finding]} if grown else {"verdict": "healthy"}

def honest(case):
    value = float(case.sql(CPU).iloc[0, 0]) if case.has("loader") else 0.0
    return found(case, [{"sql": "SELECT 1", "value": 1}, {"sql": CPU, "value": value}])

def constants(case):
    return found(case, [{"sql": "SELECT 1", "value": 1}, {"sql": "SELECT random()", "value": 0.5}])

def mute(case):
    return found(case, [])
"""


def test_support_of_honest_and_of_dishonest_diagnosers(tiny_suite: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DIAGNOSERS)
    names = ("honest", "constants", "mute")
    asked = [part for name in names for part in ("-d", f"{name}={tmp_path}/mine.py:{name}")]
    common = ["--suite", str(tiny_suite), "--isolation", "process"]
    out = ["--out", str(tmp_path / "out"), "--no-track"]
    run = CliRunner().invoke(cli, ["run", *asked, *common, *out], catch_exceptions=False)
    assert run.exit_code == 0, run.output
    folder = str(tmp_path / "out" / "tiny")
    unchecked = json.loads(CliRunner().invoke(cli, ["score", folder, *common, "--json"]).stdout)
    note = "no finding's evidence was checked"
    assert [s["metrics"]["evidence_support"]["note"] for s in unchecked] == [note] * 3
    line = ["score", folder, *common, "--evidence", "--json"]
    done = CliRunner().invoke(cli, line, catch_exceptions=False)
    summaries = {summary["diagnoser"]: summary for summary in json.loads(done.stdout)}
    support = {name: summaries[name]["metrics"]["evidence_support"] for name in names}
    assert {name: (metric["value"], metric["n"]) for name, metric in support.items()} == {
        "honest": (1.0, 2),
        "constants": (0.0, 2),
        "mute": (0.0, 2),
    }
    assert summaries["honest"]["evidence"]["rulings"] == {"also_on_twin": 2, "supported": 2}
    assert {piece["ruling"] for piece in summaries["mute"]["evidence"]["pieces"]} == {"none"}
    text = CliRunner().invoke(cli, ["score", folder, *common, "--evidence"]).stdout
    assert "constants: evidence: 2 also_on_twin, 2 refused (checked unsealed" in text
