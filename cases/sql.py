"""Queries over a case: one SELECT, one thread, and nothing of the machine within reach."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import pandas as pd

from cases.case import Recording
from cases.errors import QueryError, shorten
from cases.layout import REFERENCE
from cases.tables import SIGNALS, TABLES

WORD = re.compile(r"[a-z_]+")
COPIED_ROWS = 500_000
SETTINGS = {
    "enable_external_access": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    # Without these a table name that is unknown is looked up among the process's variables.
    "python_enable_replacements": False,
    "python_scan_all_frames": False,
    "threads": 1,
    "memory_limit": "2GB",
    "temp_directory": "",
    "preserve_insertion_order": True,
}


class Database:
    """An in-memory database that holds what queries have named so far."""

    def __init__(self, run: Recording, reference: Recording | None) -> None:
        self._sources = {"main": run} | ({REFERENCE: reference} if reference else {})
        self._known: set[tuple[str, str]] = set()
        self._connection = duckdb.connect(":memory:", config=SETTINGS)
        self._connection.execute(f"CREATE SCHEMA {REFERENCE}; SET lock_configuration = true")

    def query(self, query: str, limit: int) -> pd.DataFrame:
        """Run one SELECT; raises QueryError if refused, failing or longer than `limit` rows."""
        try:
            statement = self._only_select(query)
            self._register(set(WORD.findall(query.lower())))
            return self._fetch(statement, query, limit)
        except duckdb.Error as error:
            reason = " ".join(str(error).split())
            raise QueryError(f"must run ({reason})", where="sql", found=query) from None

    def _fetch(self, statement: Any, query: str, limit: int) -> pd.DataFrame:
        result = self._connection.execute(statement)
        chunks: list[pd.DataFrame] = [result.fetch_df_chunk()]
        rows = len(chunks[0])
        while len(chunks[-1]) and rows <= limit:
            chunks.append(result.fetch_df_chunk())
            rows += len(chunks[-1])
        if rows > limit:
            raise QueryError(f"must give at most {limit} rows", where="sql", found=query)
        return chunks[0] if rows == len(chunks[0]) else pd.concat(chunks[:-1], ignore_index=True)

    def _only_select(self, query: str) -> Any:
        statements = self._connection.extract_statements(query)
        kinds = [statement.type for statement in statements]
        if kinds != [duckdb.StatementType.SELECT]:
            found = [kind.name for kind in kinds]
            raise QueryError(f"must be one SELECT ({shorten(query)})", where="sql", found=found)
        return statements[0]

    def _register(self, words: set[str]) -> None:
        """Bring in the tables that the query's words may mean; absent ones are empty."""
        for schema, run in self._sources.items():
            if schema != "main" and schema not in words:
                continue
            for name in words & set(SIGNALS):
                if (schema, name) not in self._known:
                    table = run.arrow(name) if name in TABLES else run.trace_events
                    # What is asked often is copied once; what is long would fill the memory.
                    kind = "TABLE" if len(table) <= COPIED_ROWS else "VIEW"
                    self._connection.register(f"{schema}_{name}", table)
                    self._connection.execute(
                        f"CREATE {kind} {schema}.{name} AS FROM {schema}_{name}"
                    )
                    self._known.add((schema, name))
