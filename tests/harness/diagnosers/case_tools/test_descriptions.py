"""What a model reads of a case and of the taxonomy: whole, and short for large jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cases.bundle import Suite
from cases.case import Case
from cases.errors import InputError
from cases.schema import Link, RankPlace, Topology
from cases.tables import TABLES
from cases.taxonomy import Taxonomy
from harness.diagnosers.case_tools import descriptions
from harness.diagnosers.case_tools.places import described


def large(ranks: int) -> Topology:
    """Hosts of eight GPUs in two stages, each behind a link of its own."""
    places = [
        RankPlace(rank=n, host=f"host{n // 8}", gpu=f"host{n // 8}/gpu{n % 8}", stage=n % 8 // 4)
        for n in range(ranks)
    ]
    links = [
        Link(name=f"host{n}-switch", ranks=tuple(range(8 * n, 8 * n + 8)), kind="infiniband")
        for n in range(ranks // 8)
    ]
    return Topology(ranks=tuple(places), links=tuple(links))


def test_topology_of_hosts_with_two_stages() -> None:
    assert described(large(16)).splitlines() == [
        "host0: ranks 0-3 (stage 0) on host0/gpu0 to host0/gpu3",
        "host0: ranks 4-7 (stage 1) on host0/gpu4 to host0/gpu7",
        "host1: ranks 8-11 (stage 0) on host1/gpu0 to host1/gpu3",
        "host1: ranks 12-15 (stage 1) on host1/gpu4 to host1/gpu7",
        "link host0-switch (infiniband): ranks 0-7",
        "link host1-switch (infiniband): ranks 8-15",
    ]


@pytest.fixture
def case(tiny_suite: Path, tiny_ids: dict[str, str]) -> Case:
    return Suite.open(tiny_suite).case(tiny_ids["undecidable_test"])


def test_configuration_of_a_small_job_is_all_of_it(case: Case) -> None:
    assert json.loads(descriptions.configuration(case)) == case.info.model_dump(
        mode="json", exclude_none=True
    )


def test_configuration_of_a_large_job_stays_short(case: Case) -> None:
    topology = large(1024)
    case.info = case.info.model_copy(update={"topology": topology})
    text = descriptions.configuration(case)
    assert len(text) < 30_000
    first, *rest = text.splitlines()
    assert json.loads(first)["topology"]["ranks"] == "1024, see below"
    assert "\n".join(rest) == described(topology)
    assert "host127: ranks 1020-1023 (stage 1) on host127/gpu4 to host127/gpu7" in rest


def test_tables_tell_what_is_there_and_what_is_not(case: Case) -> None:
    text = descriptions.tables(case)
    assert "steps (48 rows; reference: 48 rows): One row per rank and step" in text
    assert "trace_events (ranks 0; reference: ranks 0): Events of the profiler's traces." in text
    absent = text.splitlines()[-1].partition(": ")[2].split(", ")
    assert absent == list(case.info.signals.absent)
    for name in case.info.signals.present:
        for column in TABLES[name].columns if name in TABLES else ():
            assert f"\n  {column} " in text


def test_every_name_of_the_taxonomy_can_be_read() -> None:
    taxonomy, tree = Taxonomy.load(), descriptions.causes()
    for name in taxonomy.nodes:
        assert f"{name}: {taxonomy.title(name)}" in tree
        text = descriptions.causes(name)
        assert taxonomy.title(name) in text
        if name in taxonomy.causes:
            assert all(other in text for other in taxonomy.confusable(name))
        else:
            assert all(child in text for child in taxonomy.children(name))


def test_unknown_name_lists_close_ones() -> None:
    with pytest.raises(InputError, match="slow_link"):
        descriptions.causes("slow_lnk")
