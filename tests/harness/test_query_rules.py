"""Which queries may be evidence, by DuckDB's own parser and catalogue."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from cases.sql import SETTINGS
from harness.child.query_rules import BARE, UNTRUE, RefusedError, Unstable, check_query


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config=SETTINGS) as connection:
        yield connection


@pytest.mark.parametrize(
    "query",
    [
        "SELECT avg(duration_ns) FROM steps",
        "FROM steps SELECT max(duration_ns)",
        "SELECT sum(s.duration_ns) / sum(r.duration_ns) FROM steps s JOIN reference.steps r"
        " USING (rank, step)",
        "SELECT count(*) FILTER (category = 'kernel') FROM main.TRACE_EVENTS",
        "WITH slow AS (SELECT rank, max(duration_ns) AS worst FROM steps GROUP BY rank)"
        " SELECT max(worst) - min(worst) FROM Slow",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 9)"
        " SELECT sum(i) FROM n",
        "SELECT sum(x) FROM generate_series(1, 9) AS t(x)",
        "SELECT quantile_cont(duration_ns, 0.9) - lag(max(duration_ns)) OVER () FROM steps",
        "SELECT list_sum(list_transform([1, 2], x -> x + 1)) + year(DATE '2000-01-01')",
        "SELECT avg(duration_ns) FROM steps TABLESAMPLE reservoir(5 ROWS) REPEATABLE (7)",
        "SELECT fdiv(max(step), 2) FROM steps",
        "SELECT 1",  # refused by nobody: it is true of the twin as well
    ],
)
def test_questions_about_the_case_are_allowed(
    connection: duckdb.DuckDBPyConnection, query: str
) -> None:
    check_query(connection, query)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("", "one SELECT"),
        ("CREATE TABLE t AS SELECT 1", "one SELECT"),
        ("SET threads = 8", "one SELECT"),
        ("COPY (SELECT 1) TO '/tmp/x'", "one SELECT"),
        ("CALL pragma_version()", "one SELECT"),
        ("DESCRIBE steps", "describe"),
        ("SELECT count(*) FROM (SHOW TABLES)", "describe"),
        ("SELECT count(*) FROM '/etc/passwd'", "/etc/passwd"),
        ("SELECT count(*) FROM read_text('/etc/passwd')", "read_text()"),
        ("SELECT count(*) FROM glob('/*')", "glob()"),
        ("SELECT count(*) FROM query('SELECT random()')", "query()"),
        ("SELECT count(*) FROM duckdb_settings()", "duckdb_settings()"),
        ("SELECT count(*) FROM information_schema.tables", "information_schema.tables"),
        ("SELECT count(*) FROM sqlite_master", "sqlite_master"),
        ("SELECT count(*) FROM system.main.duckdb_views", "duckdb_views"),
        ("SELECT count(*) FROM other.steps", "other.steps"),
        ("SELECT random()", "random"),
        ("SELECT avg(duration_ns) FROM steps ORDER BY random()", "random"),
        ("SELECT avg(duration_ns) FROM steps WHERE rank < (SELECT 10 * random())", "random"),
        ("SELECT list_sum([random() for x in [1]])", "random"),
        ("WITH a AS (SELECT random() AS x) SELECT x FROM a", "random"),
        ('SELECT "RANDOM"()', "random"),
        ("SELECT epoch(now())", "now"),
        ("SELECT epoch(get_current_timestamp())", "get_current_timestamp"),
        ("SELECT epoch(CURRENT_TIMESTAMP)", "current_timestamp"),
        ("SELECT year(current_date)", "current_date"),
        ("SELECT epoch(localtimestamp)", "localtimestamp"),
        ("SELECT epoch(pg_conf_load_time())", "current_timestamp"),  # a macro
        ("SELECT age(TIMESTAMP '2000-01-01') > INTERVAL 1 DAY", "age"),
        ("SELECT length(uuid()::VARCHAR)", "uuid"),
        ("SELECT nextval('s')", "nextval"),
        ("SELECT getvariable('x')", "getvariable"),
        ("SELECT current_setting('threads')", "current_setting"),
        ("SELECT txid_current()", "txid_current"),
        ("SELECT reservoir_quantile(duration_ns, 0.5) FROM steps", "reservoir_quantile"),
        ("SELECT avg(duration_ns) FROM steps TABLESAMPLE 10%", "without a seed"),
        ("SELECT avg(duration_ns) FROM steps USING SAMPLE 3", "without a seed"),
    ],
)
def test_everything_else_is_refused(
    connection: duckdb.DuckDBPyConnection, query: str, found: str
) -> None:
    with pytest.raises(RefusedError, match=r"^must ") as refused:
        check_query(connection, query)
    assert found in str(refused.value)


def test_no_function_that_varies_gets_through(connection: duckdb.DuckDBPyConnection) -> None:
    """Every name that DuckDB's catalogue calls volatile, whatever its version."""
    query = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE stability = ?"
    names = {name for (name,) in connection.execute(query, ["VOLATILE"]).fetchall()}
    assert {"random", "uuid", "nextval"} <= names
    for name in names | BARE | UNTRUE:
        with pytest.raises(RefusedError):
            Unstable(connection).check(name)


def test_a_query_that_nests_is_judged_or_refused(connection: duckdb.DuckDBPyConnection) -> None:
    check_query(connection, "SELECT " + "(" * 90 + "1" + ")" * 90)
    for terms, found in ((90, "random"), (900, "so deeply")):
        with pytest.raises(RefusedError, match=found):
            check_query(connection, "SELECT " + "+".join(["1"] * terms) + " + random()")
