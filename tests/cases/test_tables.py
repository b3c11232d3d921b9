"""What every declared table satisfies."""

from __future__ import annotations

import pytest

from cases.tables import TABLES


@pytest.mark.parametrize("name", TABLES)
def test_order_and_growth_name_columns(name: str) -> None:
    table = TABLES[name]
    assert set(table.order) | set(table.growth) <= set(table.columns)
    assert not set(table.order) & set(table.growth)
    assert {table.columns[column][0] for column in table.growth} <= {"int", "float"}


def test_counters_of_samples_are_growth() -> None:
    tables = {name for name, table in TABLES.items() if table.growth}
    assert tables == {"gpu", "host", "network", "processes"}
