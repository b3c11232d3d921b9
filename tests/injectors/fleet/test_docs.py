"""docs/fleet.md: its queries give its tables, and what it says of the suite holds."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import duckdb
import pytest

import injectors
from cases.tables import to_arrow
from injectors.fleet.confounders import CONFOUNDERS
from injectors.fleet.faults import FLEET_FAULTS
from injectors.fleet.suite import groups

PAGE = (Path(injectors.__file__).parents[1] / "docs" / "fleet.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```sql\n([\s\S]*?)```\n\n((?:\|.*\n)+)", PAGE)


def cells(line: str) -> list[float | str]:
    return [value_of(cell.strip()) for cell in line.strip("|\n").split("|")]


def value_of(cell: str) -> float | str:
    return float(cell) if re.fullmatch(r"\d+(\.\d+)?", cell) else cell


@pytest.mark.parametrize(("query", "table"), EXAMPLES)
def test_queries_give_the_tables_below_them(tables_of, query: str, table: str) -> None:
    jobs, before = (to_arrow("jobs", frame) for frame in tables_of("versions-a", "driver"))
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE SCHEMA reference")
    connection.register("later", jobs)
    connection.register("earlier", before)
    connection.execute("CREATE VIEW jobs AS FROM later; CREATE VIEW reference.jobs AS FROM earlier")
    found = connection.execute(query).df()
    names, _, *rows = table.splitlines()
    assert list(found.columns) == cells(names)
    assert [list(row) for row in found.itertuples(index=False)] == [cells(row) for row in rows]


def test_there_are_three_examples() -> None:
    assert len(EXAMPLES) == 3


def test_every_cause_and_confounder_is_explained() -> None:
    for name in (*FLEET_FAULTS, *CONFOUNDERS):
        assert f"\n| {name} |" in PAGE


def test_the_suite_has_as_many_cases_as_it_says() -> None:
    made = [group.make() for group in groups()]
    verdicts = Counter(case.truth.verdict for group in made for case in group.cases)
    sentence = (
        f"{verdicts.total()} cases in {len(made)} groups ({verdicts['faulty']} faulty,"
        f" {verdicts['healthy']} healthy, {verdicts['undecidable']} undecidable"
    )
    assert sentence in PAGE
