"""The demo on the shipped suite: quick, without torch, and its story is what the numbers say."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cases.bundle import PACKAGED, Suite
from cases.errors import InputError
from cases.schema import Finding
from harness import demo
from harness.judge import load_labels

FOLDER = PACKAGED / demo.SUITE
LIMIT_S = 300.0
PROGRAM = """
import sys
from harness.demo import demo
demo()
print([name for name in ("torch", "triton") if name in sys.modules])
"""


@pytest.fixture(scope="module")
def labels():
    return load_labels(FOLDER)


def test_whole_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begin < LIMIT_S
    assert done.stdout.endswith("\n[]\n")
    recorded, _, rest = done.stdout.partition("\n2. ")
    simulated = rest.partition("\n3. ")[0]
    for suite, board in ((demo.SUITE, recorded), (demo.SIMULATED, simulated)):
        for name in ("silent", "constant", "random", "shotgun", "rules", "oracle"):
            assert re.search(rf"^(\d+|unsealed).*  {name}  +\d", board, re.MULTILINE), name
            assert (tmp_path / "results" / suite / name / "summary.json").is_file()


def test_wrong_answer_is_misled_and_right_one_found(capsys: pytest.CaptureFixture[str]) -> None:
    demo.walk_through(FOLDER)
    told = capsys.readouterr().out
    assert "slow_link at link rank0-rank1 is scored misattributed (same_domain)" in told
    assert "cpu_contention_colocated at rank 0 is scored found\n" in told
    assert "nothing" not in told  # each query has something to show


def test_numbers_refute_the_plausible_reading(labels) -> None:
    """Without this the demo would tell of numbers that say something else."""
    label, fault = demo.pair_with(labels, "cpu_contention_colocated", "rank", Suite.open(FOLDER))
    case = Suite.open(FOLDER).case(label.case_id)
    waits, transfers = demo.growth(case, demo.PARTS)
    assert waits > 3 * transfers
    assert transfers < 2
    plausible = case.sql(demo.ALL_REDUCE.format(run="")).set_index("rank")["all_reduce_ms"]
    before = case.sql(demo.ALL_REDUCE.format(run="reference.")).set_index("rank")["all_reduce_ms"]
    assert (plausible / before).max() > 1.5
    delays = case.sql(demo.DELAYS.format(run="")).set_index("rank")
    assert (delays.iloc[:, 0].idxmax(),) == fault.locus.ranks


def test_transfers_tell_slow_links_from_all_else(labels) -> None:
    """The query that decides does so on all cases of its kind, not on the chosen one."""
    suite = Suite.open(FOLDER)
    grown: dict[bool, list[float]] = {True: [], False: []}
    for label in labels:
        case = suite.case(label.case_id)
        causes = {fault.cause for fault in label.faults}
        told = causes <= {"slow_link"} or causes <= {"cpu_contention_colocated"}
        language = case.info.workload.name == demo.WORKLOAD and case.has("collectives")
        if told and language and len(label.topology.ranks) == 2:
            grown["slow_link" in causes].append(demo.growth(case, demo.PARTS)[1])
    assert min(grown[True]) > 3
    assert max(grown[False]) < 2


def test_suite_without_such_a_case_is_an_error(tiny_suite: Path) -> None:
    with pytest.raises(InputError, match="tiny: must hold a language_model of two ranks with cpu"):
        demo.walk_through(tiny_suite)


def test_score_names_bucket_and_kind(labels) -> None:
    label, _ = demo.pair_with(labels, "slow_link", "link", Suite.open(FOLDER))
    assert demo.score(Finding(cause="slow_link"), label) == "unlocated"
    assert demo.score(Finding(cause="python_gc_pause"), label) == "misattributed (other)"
