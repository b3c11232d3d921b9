"""Which queries may be evidence: one SELECT over the case's tables that always gives the same.

The query is taken apart by DuckDB itself, and what a function may do is read from DuckDB's own
catalogue, so that a function of a later version is judged as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb

from cases.layout import REFERENCE
from cases.tables import SIGNALS

# Table functions that give rows of their arguments only; all others look at files or settings.
TABLE_FUNCTIONS = {"generate_series", "range", "repeat", "unnest"}
# Functions that the language calls without brackets, so that they look like columns.
BARE = {
    *("current_catalog", "current_date", "current_role", "current_schema", "current_time"),
    *("current_timestamp", "current_user", "localtime", "localtimestamp", "session_user", "user"),
}
# What the catalogue of some version calls consistent and is not: it counts from today, draws, or
# tells of settings.
UNTRUE = {
    *("age", "current_localtime", "current_localtimestamp", "current_setting", "getvariable"),
    *("reservoir_quantile", "vector_type"),
}
CATALOGUE = "SELECT lower(function_name), stability, macro_definition FROM duckdb_functions()"
Node = dict[str, Any]


class RefusedError(Exception):
    """The query may not be evidence; the text says which rule it breaks."""


def check_query(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse a query that is no evidence.

    Args:
        connection: Any connection; nothing of the query is run.
        sql: The query.

    Raises:
        RefusedError: it is not one SELECT, reads something other than the case's tables, or may
            give another number another time.
        duckdb.Error: it cannot be parsed.
    """
    kinds = [statement.type.name for statement in connection.extract_statements(sql)]
    if kinds != ["SELECT"]:
        raise RefusedError(f"must be one SELECT, found {kinds}")
    tree = _parsed(connection, sql)
    nodes = list(_nodes(tree))
    named = {name for node in nodes for name in _named_here(node)}
    unstable = Unstable(connection)
    for node in nodes:
        _check_source(node, named)
        _check_sample(node)
        for name in _called(node):
            unstable.check(name)


class Unstable:
    """The functions that may give another value another time, by the connection's catalogue."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._kinds: dict[str, set[str]] = {}
        self._macros: dict[str, list[str]] = {}
        for name, stability, macro in connection.execute(CATALOGUE).fetchall():
            self._kinds.setdefault(name, set())
            if stability is not None:
                self._kinds[name].add(stability)
            if macro is not None:
                self._macros.setdefault(name, []).append(macro)

    def check(self, name: str) -> None:
        """Refuse a function, or a macro that calls such a one."""
        if name in BARE | UNTRUE or self._varies(self._kinds.get(name, set())):
            raise RefusedError(f"must give the same whenever it is run, found {name}")
        for macro in self._macros.pop(name, []):  # popped: a macro may name itself
            try:
                tree = _parsed(self._connection, f"SELECT {macro}")
            except (RefusedError, duckdb.Error):  # one that makes a table: refused as a source
                continue
            for called in {called for node in _nodes(tree) for called in _called(node)}:
                self.check(called)

    def _varies(self, kinds: set[str]) -> bool:
        """Say whether a name must not be called.

        Arithmetic and parts of dates also stand in the catalogue for times with a zone, of which
        they are only consistent within a query: the zone is the same throughout here.
        """
        return "VOLATILE" in kinds or (bool(kinds) and "CONSISTENT" not in kinds)


def _parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> Node:
    row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
    try:
        tree: Node = json.loads(row[0]) if row else {}
    except RecursionError:
        raise RefusedError("must not nest so deeply") from None
    if tree.get("error", True):
        raise RefusedError(f"must be a SELECT, found {tree.get('error_message')}")
    return tree


def _nodes(tree: Node) -> Iterator[Node]:
    """Yield all objects of a query; a loop, for queries nest deeper than Python calls."""
    waiting: list[Any] = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _named_here(node: Node) -> Iterator[str]:
    """Yield names that a query itself gives to a part of it, which may then be read."""
    if "cte_map" in node:
        yield from (item["key"].lower() for item in node["cte_map"]["map"])


def _check_source(node: Node, named: set[str]) -> None:
    kind = node.get("type")
    if kind == "SHOW_REF":
        raise RefusedError("must not describe tables")
    if kind == "TABLE_FUNCTION":
        name = str(node["function"]["function_name"]).lower()
        if name not in TABLE_FUNCTIONS:
            raise RefusedError(f"must read the case's tables only, found {name}()")
    if kind == "BASE_TABLE":
        schema, table = node["schema_name"].lower(), node["table_name"].lower()
        own = schema in ("", "main", REFERENCE) and table in SIGNALS
        if node["catalog_name"] or not (own or (not schema and table in named)):
            found = ".".join(part for part in (node["catalog_name"], schema, table) if part)
            raise RefusedError(f"must read the case's tables only, found {found}")


def _check_sample(node: Node) -> None:
    sample = node.get("sample")
    if not isinstance(sample, dict):
        return
    seed = sample.get("seed")
    # Older versions of DuckDB only tell the seed, -1 or the largest number where none was given.
    seeded = isinstance(seed, int) and 0 <= seed < 2**63
    if not sample.get("repeatable", seeded):
        raise RefusedError("must give the same whenever it is run, found a sample without a seed")


def _called(node: Node) -> Iterator[str]:
    if "function_name" in node:
        yield str(node["function_name"]).lower()
    elif node.get("class") == "COLUMN_REF" and len(node["column_names"]) == 1:
        name = str(node["column_names"][0]).lower()
        if name in BARE:
            yield name
