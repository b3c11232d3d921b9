"""Facts read what they are worked out from, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from cases.bundle import PACKAGED, Suite
from cases.case import Case, Recording
from harness.diagnosers.features import Facts, extract
from harness.diagnosers.features.jobs import SOURCES, Job
from harness.diagnosers.features.metrics import METRICS
from harness.diagnosers.features.numbers import NAMES

SUITE = Suite.open(PACKAGED / "recorded_cpu")


@pytest.fixture
def case() -> Case:
    """A case whose ranks talk to each other and that was compared with a reference run."""
    opened = (SUITE.case(case_id) for case_id in SUITE.case_ids)
    return next(c for c in opened if c.reference and len(c.arrow("collectives")))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The tables that were read."""
    names, arrow = set(), Recording.arrow

    def watched(run: Recording, name: str) -> object:
        names.add(name)
        return arrow(run, name)

    monkeypatch.setattr(Recording, "arrow", watched)
    yield names


def test_healthy_job_costs_no_more_than_its_steps(case: Case, read: set[str]) -> None:
    facts = Facts(case)
    read.clear()
    assert facts["slowdown"] > 0
    assert read == {"steps"}


def test_metric_reads_its_own_table(case: Case, read: set[str]) -> None:
    facts = Facts(case)
    read.clear()
    facts["fetch.max"], facts["said.warns"]
    assert read == {"loader", "logs"}


def test_asking_for_one_gives_what_asking_for_all_gives(case: Case) -> None:
    every, facts = extract(case).values, Facts(case)
    assert set(NAMES) <= set(every)
    for name, value in every.items():
        if not name.startswith("has."):
            assert facts[name] == value or math.isnan(value)


def test_ranks_have_three_numbers_a_metric(case: Case) -> None:
    ranks = extract(case).ranks
    assert list(ranks.index) == [place.rank for place in case.info.topology.ranks]
    assert len(ranks.columns) == 3 * len(METRICS)


def test_every_number_of_a_job_is_read_from_where_it_is_said_to_be(case: Case) -> None:
    names = {name.removeprefix("job.").removeprefix("said.") for name in Job(case).all}
    assert set(SOURCES) <= names
    assert {name.partition(".")[0] for name in names} <= {n.partition(".")[0] for n in SOURCES}


def test_unknown_fact_is_not_known(case: Case) -> None:
    facts = Facts(case)
    assert all(math.isnan(facts[name]) for name in ("clock.now", "nothing.max", "job.nothing"))
