"""The GPU session's script: refuses a machine without a GPU, runs and packs on one with it."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from injectors.capabilities import cuda
from injectors.matrix import CAPABILITIES
from injectors.scenario import read_matrix

SCRIPT = Path(__file__).parents[2] / "injectors" / "gpu_session.sh"
MATRIX = SCRIPT.parent / "scenarios" / "recorded_cuda.yaml"
# Plays an interpreter on a GPU machine: the stages leave what real ones would.
PLAYED = """#!/usr/bin/env bash
case "$*" in
*"injectors.capabilities"*) echo "1 visible, 1 needed, NVIDIA H200" ;;
*doctor*) echo "CUDA devices yes" ;;
*pytest*) echo "3 passed"; exit ${TESTS_STATUS:-0} ;;
*record*)
    mkdir -p "${@: -1}/labels/s" "${@: -1}/corpus/s/c1"
    echo '{}' >"${@: -1}/corpus/s/c1/case.json"
    echo '{}' >"${@: -1}/labels/s/c1.json"
    head -c ${RECORDED_BYTES:-1000} /dev/urandom >"${@: -1}/corpus/s/c1/trace" ;;
esac
"""


def session(*arguments, **environment):
    return subprocess.run(
        [SCRIPT, *arguments],
        env={**os.environ, "PYTHON": sys.executable, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def played(tmp_path):
    program = tmp_path / "python-on-a-gpu"
    program.write_text(PLAYED)
    program.chmod(0o755)
    return str(program)


def test_says_clearly_that_there_is_no_gpu(tmp_path):
    if cuda():
        pytest.skip("there is a CUDA device")
    done = session(str(tmp_path / "out"))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"gpu_session: needs a GPU that torch can use: {cuda().reason}"
    )
    assert not (tmp_path / "out").exists()


def test_wants_a_folder():
    done = session()
    assert done.returncode != 0
    assert "usage: injectors/gpu_session.sh OUT" in done.stderr


def test_packs_what_was_recorded(tmp_path, played):
    out = tmp_path / "out"
    done = session(str(out), PYTHON=played)
    assert done.returncode == 0, done.stderr
    assert "GPU: 1 visible, 1 needed, NVIDIA H200" in done.stdout
    with tarfile.open(out / "cases.tar.gz.00") as packed:
        assert "corpus/s/c1/case.json" in packed.getnames()
    assert (out / "tests.txt").read_text() == "3 passed\n"
    assert "cases: 1 in 1 parts" in (out / "summary.txt").read_text()


def test_is_cut_into_parts_that_can_be_carried(tmp_path, played):
    out = tmp_path / "out"
    done = session(str(out), PYTHON=played, RECORDED_BYTES="20000000")
    assert done.returncode == 0, done.stderr
    parts = sorted(out.glob("cases.tar.gz.*"))
    assert len(parts) == 2
    assert all(part.stat().st_size <= 15 << 20 for part in parts)
    assert len(list(out.iterdir())) <= 8
    whole = tmp_path / "whole.tar.gz"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    with tarfile.open(whole) as packed:
        assert "corpus/s/c1/trace" in packed.getnames()


def test_a_failed_stage_is_the_outcome_but_stops_no_other(tmp_path, played):
    out = tmp_path / "out"
    done = session(str(out), PYTHON=played, TESTS_STATUS="1")
    assert done.returncode == 1
    assert "tests: exit status 1" in (out / "summary.txt").read_text()
    assert (out / "cases.tar.gz.00").exists()


def test_time_limits_add_up_to_eight_minutes():
    limits = [
        int(line.split()[2]) for line in SCRIPT.read_text().splitlines() if line[:6] == "stage "
    ]
    assert len(limits) == 3
    assert sum(limits) <= 8 * 60 - 30


def test_matrix_asks_for_one_gpu_at_most():
    scenarios = read_matrix(MATRIX)
    needs = set().union(*(scenario.needs() for scenario in scenarios))
    assert needs <= set(CAPABILITIES) - {"several_gpus", "nccl", "network_shaping"}
    assert {scenario.ranks for scenario in scenarios} == {1}
    assert all(scenario.cases for scenario in scenarios)
