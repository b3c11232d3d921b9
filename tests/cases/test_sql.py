"""SQL over a case: one SELECT, and nothing of the machine within reach."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from cases.bundle import Suite
from cases.case import Case
from cases.errors import QueryError

secret_frame = pd.DataFrame({"password": ["hunter2"]})


@pytest.fixture(scope="module")
def case(tiny_suite: Path, tiny_ids: dict[str, str]) -> Case:
    return Suite.open(tiny_suite).case(tiny_ids["contention_train"])


def test_tables_traces_and_reference_join(case: Case) -> None:
    frame = case.sql(
        'SELECT s.rank, avg(s.duration_ns) / avg(r.duration_ns) AS "ratio"'
        " FROM steps s JOIN reference.steps r USING (rank, step) GROUP BY ALL ORDER BY rank"
    )
    assert frame["rank"].tolist() == [0, 1]
    assert frame["ratio"].tolist() == pytest.approx([1.5, 1.5], rel=0.01)
    operators = case.sql("SELECT count(*) AS n FROM TRACE_EVENTS WHERE category = 'cpu_op'")
    assert operators["n"].item() == 3


def test_absent_tables_are_empty(case: Case) -> None:
    assert case.sql("SELECT sum(bytes) IS NULL AS empty FROM collectives")["empty"].item()
    assert case.sql("SELECT count(*) AS n FROM reference.gpu")["n"].item() == 0


def test_nulls_stay_nulls(case: Case) -> None:
    frame = case.sql("SELECT rank FROM processes ORDER BY process, time_ns")
    assert frame["rank"].isna().sum() == 5


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM secret_frame",
        "SELECT getenv('HOME')",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "ATTACH '/tmp/x.db' AS x",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "INSTALL httpfs",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW steps",
        "SELECT 1; SELECT 2",
        "EXPLAIN SELECT 1",
        "",
        "SELEC 1",
        "SELECT nothing FROM steps",
    ],
)
def test_everything_else_is_refused(case: Case, query: str) -> None:
    with pytest.raises(QueryError, match="sql"):
        case.sql(query)


def test_queries_leave_no_trace_on_later_ones(case: Case) -> None:
    with pytest.raises(QueryError):
        case.sql("CREATE SCHEMA evil")
    assert (
        "evil" not in case.sql("SELECT schema_name FROM duckdb_schemas()")["schema_name"].tolist()
    )


def test_row_limit(case: Case) -> None:
    assert len(case.sql("SELECT * FROM range(5000)", limit=5000)) == 5000
    with pytest.raises(QueryError, match="at most 4999 rows"):
        case.sql("SELECT * FROM range(5000)", limit=4999)
    assert case.sql("SELECT 1 AS x WHERE false").columns.tolist() == ["x"]


def test_changed_frames_do_not_change_queries(tiny_suite: Path, tiny_ids: dict[str, str]) -> None:
    case = Suite.open(tiny_suite).case(tiny_ids["twin_dev"])
    case.steps["duration_ns"] = 0
    assert case.sql("SELECT min(duration_ns) AS low FROM steps")["low"].item() > 0
