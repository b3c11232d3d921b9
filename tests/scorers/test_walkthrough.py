"""The example of docs/scoring.md, every number of it."""

import re
from pathlib import Path

import numpy as np
import pytest

from cases.schema import JOB, Window
from cases.taxonomy import Taxonomy
from scorers import score
from scorers.intervals import rate_bounds

DOCUMENT = Path(__file__).parents[2] / "docs" / "scoring.md"
ROW = re.compile(r"\| `(\w[\w.]*)` \|.*\| (-?\d\.\d{4}) \|")


def seconds(start, end):
    return (Window(start_ns=start * 10**9, end_ns=end * 10**9),)


@pytest.fixture(scope="module")
def scores(make):
    ids = [f"job{i}" for i in range(1, 6)]
    where = [{"case_id": case, "group": f"g{case}"} for case in ids]
    slow_rank = make.fault("cpu_contention_colocated", make.at(2), 0.2, victims=(0, 1, 3))
    labels = [
        make.label(slow_rank, **where[0]),
        make.label(make.fault("dataloader_cpu_bound", JOB, 0.3, windows=seconds(1, 3)), **where[1]),
        make.label(make.fault("thermal_throttle", make.at(0), 0.1), **where[2]),
        make.label(**where[3]),
        make.undecidable(**where[4]),
    ]
    responses = [
        make.says(
            make.finding("slow_link", make.at(0, 1, 3), 0.8),
            make.finding("cpu_contention_colocated", make.at(2), 0.6, lost_fraction=0.15),
            case_id="job1",
        ),
        make.says(
            make.finding(
                "dataloader_cpu_bound", JOB, 0.9, lost_fraction=0.25, windows=seconds(2, 4)
            ),
            case_id="job2",
        ),
        make.says(make.finding("gpu_clocks", make.at(0), 0.7), case_id="job3"),
        make.says(make.finding("padding_waste", None, 0.4), case_id="job4"),
        make.abstains(case_id="job5", missing_signals=("network",)),
    ]
    by_id = {response.case_id: response for response in responses}
    return score(labels, by_id, Taxonomy.load(), train_median_lost_fraction=0.25)


def test_the_page_holds_every_metric_with_the_value_computed(scores):
    written = {name: float(value) for name, value in ROW.findall(DOCUMENT.read_text())}
    computed = {
        name: round(metric.value, 4)
        for name, metric in scores.metrics.items()
        if not name.endswith("_applicable") and not name.startswith("recall_of_")
    }
    assert written == computed


def test_outcomes_are_as_the_page_says(scores):
    assert list(scores.cases["bucket"]) == [
        "misled",
        "found",
        "partial",
        "false_alarm",
        "abstained_informed",
    ]
    assert list(scores.faults["bucket"]) == ["found", "found", "found_coarse"]
    assert list(scores.findings["kind"].dropna()) == ["victim", "other"]


def test_five_groups_have_no_interval(scores):
    for metric in scores.metrics.values():
        assert metric.low is None and "at least 6 are needed" in metric.note


def test_wilson_as_on_the_page():
    # Alternating groups of (1, 0): the estimated correlation is negative, the floor is 0.3.
    bounds = rate_bounds(np.tile([1.0, 0.0], 6), np.repeat(np.arange(6), 2))
    assert (round(bounds.low, 4), round(bounds.high, 4)) == (0.177, 0.823)
