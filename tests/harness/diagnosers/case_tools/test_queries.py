"""Queries that a model wrote: limits that end the query and not the case."""

from __future__ import annotations

import time
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.bundle import Suite
from cases.case import Case
from cases.errors import QueryError
from cases.schema import Evidence
from harness.diagnosers.case_tools.answers import holds
from harness.diagnosers.case_tools.queries import Queries, QueryLimits
from harness.diagnosers.case_tools.rows import MOST_CHARACTERS, as_text
from scorers.evidence import is_true

ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"


@pytest.fixture
def case(tiny_suite: Path, tiny_ids: dict[str, str]) -> Case:
    return Suite.open(tiny_suite).case(tiny_ids["loader_dev"])


@pytest.fixture
def queries(case: Case) -> Iterator[Queries]:
    with Queries(case, QueryLimits(timeout_s=1)) as queries:
        yield queries


def test_endless_query_is_ended_and_the_next_one_runs(queries: Queries) -> None:
    start = time.monotonic()
    with pytest.raises(QueryError, match="must end within 1 s"):
        queries.rows(ENDLESS)
    assert time.monotonic() - start < 5
    assert not active_children()
    assert queries.rows("SELECT count(*) AS n FROM steps") == "n\n48\n(1 row)"


def test_query_that_holds_too_much_is_ended(case: Case) -> None:
    held = "SELECT len(l) FROM (SELECT list(i) AS l FROM range(100000000) r(i))"
    with (
        Queries(case, QueryLimits(timeout_s=60, memory_bytes=300 * 2**20)) as queries,
        pytest.raises(QueryError, match="must hold at most 300 MiB"),
    ):
        queries.rows(held)


def test_process_that_is_killed_costs_its_query(queries: Queries) -> None:
    queries.rows("SELECT 1")
    (child,) = active_children()
    child.kill()
    with pytest.raises(QueryError, match="must not end the process"):
        queries.rows("SELECT 1")
    assert queries.rows("SELECT 1 AS one") == "one\n1\n(1 row)"


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT 1; SELECT 2", "must be one SELECT"),
        ("SELECT now()", "must give the same whenever it is run, found now"),
        ("SELECT * FROM duckdb_settings()", "must read the case's tables only"),
        ("SELECT * FROM '/etc/passwd'", "must read the case's tables only"),
        ("ATTACH '/tmp/a.db'", "must be one SELECT"),
        ("SELECT nothing FROM steps", "Binder Error"),
        ("", "must be one SELECT"),
    ],
)
def test_refused_query_says_why(queries: Queries, sql: str, says: str) -> None:
    with pytest.raises(QueryError, match=says.replace("(", r"\(")):
        queries.rows(sql)


def test_reference_run_is_within_reach(queries: Queries) -> None:
    query = "SELECT round(avg(duration_ns) / 1e6) AS ms FROM reference.steps"
    assert queries.rows(query) == "ms\n10\n(1 row)"


def test_same_query_gives_the_same_text(queries: Queries) -> None:
    query = "SELECT rank, avg(duration_ns) AS mean FROM steps GROUP BY rank ORDER BY rank"
    assert queries.rows(query) == queries.rows(query)


def test_many_rows_are_counted_and_the_first_shown() -> None:
    text = as_text(pd.DataFrame({"n": range(1000)}))
    assert text.splitlines()[-2:] == ["49", "(1000 rows, the first 50 shown)"]


def test_long_cells_and_long_tables_are_cut() -> None:
    text = as_text(pd.DataFrame({"a": ["x" * 1000] * 50, "b": ["y" * 1000] * 50}))
    assert MOST_CHARACTERS - 1000 < len(text) < MOST_CHARACTERS + 100
    assert text.endswith("(50 rows, the first 19 shown)")


def test_cells_with_commas_are_quoted() -> None:
    assert (
        as_text(pd.DataFrame({"a": ['x, "y"'], "b": [True]})).splitlines()[1] == '"x, ""y""",True'
    )


@given(
    value=st.floats(-1e9, 1e9),
    found=st.none() | st.floats(-1e9, 1e9),
    tolerance=st.floats(0, 1),
)
def test_evidence_holds_by_the_rule_of_the_scorers(
    value: float, found: float | None, tolerance: float
) -> None:
    claim = Evidence(sql="SELECT 1", value=value, tolerance=tolerance)
    assert holds(claim, found) == is_true(claim, found)
    assert holds(claim, value * 1.04) == is_true(claim, value * 1.04)
