"""`cases build` and `record --backend sim` as a user runs them, and when they can't go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases.bundle import Suite
from harness.cli import main
from harness.judge import load_truths
from injectors.leftovers import sole_recorder

ROOT = Path(__file__).parents[2]
START_LIMIT_S = 240
SCENARIO = """
format: evalharness.scenario/1.0
name: churn
workload: ddp_transformer
machine: h100
ranks: 2
steps: 20
profiled_steps: 2
parameters: {layers: 2, hidden: 1024, heads: 16, sequence: 512, micro_batch: 4}
arms:
  churn: {fault: recompilation_churn, parameters: {every: 4}}
cases: [{arm: churn}, {arm: healthy}]
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output, last line of standard error."""
    with pytest.raises(SystemExit) as exit:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(exit.value.code or 0), out, err.strip().splitlines()[-1] if err else ""


def marked(mark: str) -> list[int]:
    """Living processes whose environment holds a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def wait_until(holds: object, what: str) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_killed_in_the_middle_it_goes_on_to_the_same_suite(
    small_suite: Path, small_matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = f"EVALHARNESS_TEST_MARK={tmp_path}"
    arguments = ("cases", "build", str(small_matrix), "--out", str(tmp_path))
    code = f"from harness.cli import main; main({[*arguments, '--jobs', '2']!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | dict([mark.split("=", 1)]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    journal = tmp_path / "labels" / "small_matrix.journal.jsonl"
    try:
        wait_until(lambda: journal.exists() and journal.stat().st_size, "no group was made")
        assert len(marked(mark)) >= 3, "the builder and two workers"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until(lambda: not marked(mark), "its workers must end with it")
    assert not (tmp_path / "suites" / "small_matrix" / "suite.json").exists()
    status, out, _ = run(capsys, *arguments, "--jobs", 1)
    assert status == 0
    public = Suite.open(small_suite).info
    assert out == f"small_matrix: {len(public.cases)} cases, {public.digest}\n"
    assert Suite.open(tmp_path / "suites" / "small_matrix").info == public


def test_the_command_says_what_it_built(
    small_suite: Path, small_matrix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in small_suite.rglob("*")}
    status, out, _ = run(capsys, "cases", "build", small_matrix, "--out", small_suite.parents[1])
    assert status == 0 and "small_matrix: " in out
    assert {path: path.stat().st_mtime_ns for path in small_suite.rglob("*")} == before


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("simulated", "must be one of ['simulated_core', 'simulated_fleet', 'simulated_smoke']"),
        ("recorded_cpu", "found 'recorded_cpu'"),
        ("none.yaml", "none.yaml: must be readable"),
    ],
)
def test_unknown_suites(
    name: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = run(capsys, "cases", "build", name, "--out", tmp_path)
    assert status == 2 and sentence in err


@pytest.mark.parametrize("out", ["/sys/evalharness", "file/below", "file"])
def test_folders_that_cannot_be_written_to(
    out: str,
    small_matrix: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    status, _, err = run(capsys, "cases", "build", small_matrix, "--out", out)
    assert status == 2
    assert "must be a folder that can be written to" in err or "is a file" in err


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 kB; only root can mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system can't be mounted")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills(
    small_disk: Path, small_matrix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = run(capsys, "cases", "build", small_matrix, "--out", small_disk, "--jobs", 1)
    assert status == 3
    assert f"{small_disk}" in err and "must have room" in err
    assert not list(small_disk.rglob("suite.json"))


def test_two_builders_at_once(
    small_matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sole_recorder(tmp_path / "suites" / "small_matrix"):
        status, _, err = run(capsys, "cases", "build", small_matrix, "--out", tmp_path)
    assert status == 2 and "must not be recorded to by two at once" in err


def test_a_backend_that_there_is_not(
    small_matrix: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("EVALHARNESS_SIM_BACKEND", "fortran")
    status, _, err = run(capsys, "cases", "build", small_matrix, "--out", tmp_path)
    assert status == 2
    assert "EVALHARNESS_SIM_BACKEND: must be one of ['auto', 'numba', 'numpy']" in err


def write(folder: Path, text: str) -> Path:
    file = folder / "scenario.yaml"
    file.write_text(text)
    return file


def test_a_scenario_of_gpus_is_simulated_and_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = write(tmp_path, SCENARIO), tmp_path / "out"
    status, text, err = run(capsys, "record", file, "--out", out)
    assert status == 2 and not text
    assert err.endswith(
        "churn: workload: must be a workload that runs for real (this one is for --backend sim),"
        " found 'ddp_transformer'"
    )
    status, text, _ = run(capsys, "record", file, "--out", out, "--backend", "sim")
    assert status == 0 and text.count("churn: made ") == 2
    truths = load_truths(out / "corpus" / "scenario")
    assert sorted(truth.verdict for truth in truths.values()) == ["faulty", "healthy"]


def test_a_scenario_of_cpus_is_simulated_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ROOT / "injectors" / "scenarios" / "slow_link.yaml"
    status, text, _ = run(capsys, "record", file, "--out", tmp_path, "--backend", "sim")
    assert status == 0 and text.count("made ") == 2
    suite = Suite.open(tmp_path / "corpus" / "slow_link")
    truths = load_truths(suite.folder)
    (faulty,) = [truth for truth in truths.values() if truth.verdict == "faulty"]
    assert faulty.faults[0].cause == "slow_link" and faulty.faults[0].locus.links
    assert {suite.case(case).info.provenance.backend for case in truths} == {"simulated"}


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("machine: h100", "machine: b200", "machine must be one of ['a100', 'cpu',"),
        ("machine: h100", "machine: cpu", "machine must be one with GPUs for ddp_transformer"),
        ("ranks: 2", "ranks: 0", "ranks: Input should be greater than 0, found 0"),
        ("hidden: 1024", "hidden: 1023", "hidden must be a multiple of heads, got 1023 for 16"),
        ("every: 4", "evry: 4", "arms.churn.every: Field required"),
        ("arm: churn", "arm: burn", "case arm 'burn' must be 'healthy' or one of ['churn']"),
        ("ddp_transformer", "ddp", "unknown workload 'ddp', must be one of ['ddp_transformer'"),
    ],
)
def test_a_scenario_that_is_wrong_names_field_and_value(
    before: str, after: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, SCENARIO.replace(before, after))
    status, _, err = run(capsys, "record", file, "--out", tmp_path, "--backend", "sim")
    assert status == 2 and str(file) in err and sentence in err
