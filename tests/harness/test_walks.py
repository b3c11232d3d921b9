"""The walk on the shipped suite: its story is what the numbers say."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases.bundle import PACKAGED, Suite
from cases.errors import InputError
from cases.schema import Finding
from harness import walks
from harness.demo import SUITE
from harness.judge import load_labels
from scorers import Label

FOLDER = PACKAGED / SUITE
SLOW_LINK = ("slow_link", "link", walks.WORKLOAD, 2)


@pytest.fixture(scope="module")
def labels() -> list[Label]:
    return load_labels(FOLDER)


def test_wrong_answer_is_misled_and_right_one_found(capsys: pytest.CaptureFixture[str]) -> None:
    walks.lost_core(FOLDER)
    told = capsys.readouterr().out
    assert "slow_link at link rank0-rank1 is scored misattributed (same_domain)" in told
    assert "cpu_contention_colocated at rank 0 is scored found\n" in told
    assert "nothing" not in told  # each query has something to show


def test_numbers_refute_the_plausible_reading(labels: list[Label]) -> None:
    """Without this the demo would tell of numbers that say something else."""
    label, fault = walks.case_of(
        labels, Suite.open(FOLDER), "cpu_contention_colocated", "rank", walks.WORKLOAD, 2
    )
    case = Suite.open(FOLDER).case(label.case_id)
    waits, transfers = walks.growth(case, walks.PARTS)
    assert waits > 3 * transfers
    assert transfers < 2
    plausible = case.sql(walks.ALL_REDUCE.format(run="")).set_index("rank")["all_reduce_ms"]
    before = case.sql(walks.ALL_REDUCE.format(run="reference.")).set_index("rank")["all_reduce_ms"]
    assert (plausible / before).max() > 1.5
    delays = case.sql(walks.DELAYS.format(run="")).set_index("rank")
    assert (delays.iloc[:, 0].idxmax(),) == fault.locus.ranks


def test_transfers_tell_slow_links_from_all_else(labels: list[Label]) -> None:
    """The query that decides does so on all cases of its kind, not on the chosen one."""
    suite = Suite.open(FOLDER)
    grown: dict[bool, list[float]] = {True: [], False: []}
    for label in labels:
        case = suite.case(label.case_id)
        causes = {fault.cause for fault in label.faults}
        told = causes <= {"slow_link"} or causes <= {"cpu_contention_colocated"}
        language = case.info.workload.name == walks.WORKLOAD and case.has("collectives")
        if told and language and len(label.topology.ranks) == 2:
            grown["slow_link" in causes].append(walks.growth(case, walks.PARTS)[1])
    assert min(grown[True]) > 3
    assert max(grown[False]) < 2


def test_suite_without_such_a_case_is_an_error(tiny_suite: Path) -> None:
    with pytest.raises(InputError, match="tiny: must hold a language_model of 2 ranks with cpu"):
        walks.lost_core(tiny_suite)


def test_score_names_bucket_and_kind(labels: list[Label]) -> None:
    label, _ = walks.case_of(labels, Suite.open(FOLDER), *SLOW_LINK)
    assert walks.score(Finding(cause="slow_link"), label) == "unlocated"
    assert walks.score(Finding(cause="python_gc_pause"), label) == "misattributed (other)"
