"""The figures that thresholds are held against are those of the summary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.gate_figures import Figures, Selection, in_split
from harness.stored import read_stored
from scorers.scores import figures

MakeResults = Callable[..., Path]
SPLITS = {"case00": "train", "case01": "train", "case13": "public_test"}


def test_over_all_cases_they_are_those_of_the_summary(make_results: MakeResults) -> None:
    result = read_stored(make_results(misled=("case02", "case09"), splits=SPLITS))
    tables = result.tables()
    ours, whole = Figures(tables), figures(tables, 0.3)
    assert set(whole) >= {"misled_rate", "brier", "augrc", "recall_in_host_network"}
    for name, metric in whole.items():
        found = ours.metric(name, Selection(), 0.95)
        assert (found.value, found.low, found.high) == (metric.value, metric.low, metric.high), name
    for name in set(whole) & set(result.summary.metrics):
        if name not in ("misled_rate", "net_benefit_w1_reference", "recall_cause", "top1"):
            stated = result.summary.metrics[name].value
            assert name.startswith("lost_fraction_error") or stated == whole[name].value, name


@pytest.mark.parametrize("split", ["train", "dev", "public_test"])
def test_over_a_split_they_are_those_of_its_cases_alone(
    make_results: MakeResults, split: str
) -> None:
    tables = read_stored(make_results(misled=("case00", "case09"), splits=SPLITS)).tables()
    part = in_split(tables, split)  # type: ignore[arg-type]
    assert 0 < len(part.cases) < len(tables.cases)
    ours, alone = Figures(tables), figures(part, 0.3)
    for name, metric in alone.items():
        found = ours.metric(name, Selection(split), 0.95)  # type: ignore[arg-type]
        assert (found.value, found.low, found.high) == (metric.value, metric.low, metric.high), name


def test_wider_intervals_for_smaller_errors(make_results: MakeResults) -> None:
    ours = Figures(read_stored(make_results(misled=("case00", "case09"))).tables())
    names = ("misled_rate", "net_benefit_w1", "brier", "f1_cause", "recall_cause")
    for name in names:
        wide, narrow = (ours.metric(name, Selection(), level) for level in (0.99, 0.8))
        assert wide.low is not None and narrow.low is not None, name
        assert wide.low <= narrow.low, name
        assert wide.low < narrow.low or wide.high > narrow.high, name  # type: ignore[operator]
    assert ours.metric("recall_of_slow_link", Selection(), 0.95).note  # four groups are too few
