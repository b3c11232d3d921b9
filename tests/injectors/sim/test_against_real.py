"""Simulated slow-downs against those that the labels of recorded_cpu measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases.bundle import Suite
from cases.errors import InputError
from injectors.sim.comparison import Comparison, by_cause, comparisons

ROOT = Path(__file__).parents[3] / "cases"
SUITE, LABELS = ROOT / "corpus" / "recorded_cpu", ROOT / "labels" / "recorded_cpu"
GROUPS = (
    "language-padding-1",
    "language-contention-1",
    "pair-link-2",
    "image-storage-2",
    "image-decode-2",
    "pipeline-1",
    "experts-1",
)


@pytest.fixture(scope="module")
def rows() -> list[Comparison]:
    return [*comparisons(Suite.open(SUITE), LABELS, GROUPS)]


def test_every_arm_with_a_shipped_case_is_compared(rows: list[Comparison]) -> None:
    assert {row.group for row in rows} == set(GROUPS)
    assert len({(row.group, row.arm) for row in rows}) == len(rows) == 16


def test_twins_are_slowed_as_the_real_jobs_were(rows: list[Comparison]) -> None:
    assert [row for row in rows if not row.agrees] == []


def test_calibration_makes_healthy_twins_as_fast_as_their_recordings(
    rows: list[Comparison],
) -> None:
    assert all(0.93 < row.healthy < 1.07 for row in rows)


def test_table_has_a_line_for_each_cause_and_one_for_all() -> None:
    rows = [
        Comparison("g", "a", "slow_link", 2, real=2.0, simulated=1.0, healthy=1.0),
        Comparison("g", "b", "slow_link", 2, real=2.0, simulated=2.2, healthy=1.0),
    ]
    assert by_cause(rows).splitlines()[2:] == [
        "| slow_link | 2 | 2.00 | 1.00 to 2.20 | 0.80 (0.50 to 1.10) | 1 |",
        "| all | 2 | 2.00 | 1.00 to 2.20 | 0.80 (0.50 to 1.10) | 1 |",
    ]
    with pytest.raises(InputError, match="comparison"):
        by_cause([])
