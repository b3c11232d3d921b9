"""The example of docs/scoring.md, every number of it."""

import re
from pathlib import Path

import numpy as np
import pytest

from cases.schema import JOB, Window
from cases.taxonomy import Taxonomy
from scorers import score
from scorers.rates import rate_bounds

DOCUMENT = Path(__file__).parents[2] / "docs" / "scoring.md"
ROW = re.compile(r"\| `(\w[\w.]*)` \|.*\| (-?\d\.\d{4}|-) \|")


def seconds(start, end):
    return (Window(start_ns=start * 10**9, end_ns=end * 10**9),)


@pytest.fixture(scope="module")
def scores(make):
    ids = [f"job{i}" for i in range(1, 6)]
    where = [{"case_id": case, "group": f"g{case}", "duration_ns": 10**10} for case in ids]
    slow_rank = make.fault("cpu_contention_colocated", make.at(2), 0.2, victims=(0, 1, 3))
    labels = [
        make.label(slow_rank, **where[0]),
        make.label(make.fault("dataloader_cpu_bound", JOB, 0.3, windows=seconds(1, 3)), **where[1]),
        make.label(make.fault("thermal_throttle", make.at(0), 0.1), **where[2]),
        make.label(**where[3]),
        make.undecidable("job5", "gjob5"),
    ]
    responses = [
        make.says(
            make.finding("slow_link", make.at(0, 1, 3), 0.8),
            make.finding("cpu_contention_colocated", make.at(2), 0.6, lost_fraction=0.15),
            case_id="job1",
            confidence=0.7,
            supported=(False, True),
        ),
        make.says(
            make.finding(
                "dataloader_cpu_bound", JOB, 0.9, lost_fraction=0.25, windows=seconds(2, 4)
            ),
            case_id="job2",
            confidence=0.9,
            supported=(True,),
        ),
        make.says(
            make.finding("gpu_clocks", make.at(0), 0.7),
            case_id="job3",
            confidence=0.6,
            supported=(False,),
        ),
        make.says(
            make.finding("padding_waste", None, 0.4),
            case_id="job4",
            confidence=0.4,
            supported=(False,),
        ),
        make.abstains(case_id="job5", missing_signals=("network",)),
    ]
    by_id = {response.case_id: response for response in responses}
    return score(labels, by_id, Taxonomy.load(), train_median_lost_fraction=0.25)


def test_the_page_holds_every_metric_with_the_value_computed(scores):
    written = {
        name: None if value == "-" else float(value)
        for name, value in ROW.findall(DOCUMENT.read_text())
    }
    computed = {
        name: None if metric.value is None else round(metric.value, 4)
        for name, metric in scores.metrics.items()
        if not name.endswith("_applicable")
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
    for name, metric in scores.metrics.items():
        assert metric.low is None
        if metric.value is not None and not name.startswith("ece"):
            least = 20 if name.startswith("augrc") else 6
            assert f"at least {least} are needed" in metric.note


def test_wilson_as_on_the_page():
    # Alternating groups of (1, 0): the estimated correlation is negative, the floor is 0.3.
    bounds = rate_bounds(np.tile([1.0, 0.0], 6), np.repeat(np.arange(6), 2))
    assert (round(bounds.low, 4), round(bounds.high, 4)) == (0.177, 0.823)


def test_minimum_detectable_as_on_the_page(make):
    # Three faults each at 0.05, 0.1, 0.2 and 0.4, of which 0, 1, 2 and 3 are found.
    labels, answers = [], {}
    for level, cost in enumerate((0.05, 0.1, 0.2, 0.4)):
        for i in range(3):
            case = f"case{level}{i}"
            fault = make.fault("slow_link", make.at(0), cost)
            labels.append(make.label(fault, case_id=case, group=f"g{3 * level + i}"))
            found = [make.finding("slow_link", make.at(0))] if i < level else []
            answers[case] = make.says(*found, case_id=case)
    metric = score(labels, answers, Taxonomy.load()).metrics["minimum_detectable"]
    assert round(metric.value, 4) == 0.1414
