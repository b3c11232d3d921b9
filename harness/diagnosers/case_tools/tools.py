"""The tools: a table of names, what each is for, what it takes and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError

from cases.case import Case
from cases.documents import record_error
from cases.errors import EvalHarnessError, InputError
from cases.schema import Diagnosis, Record
from harness.diagnosers.case_tools import descriptions
from harness.diagnosers.case_tools.answers import problems
from harness.diagnosers.case_tools.queries import Queries


class Nothing(Record):
    """A tool that takes no arguments."""


class SqlArguments(Record):
    """Arguments of `run_sql`."""

    sql: str = Field(description="One SELECT in DuckDB's dialect.", max_length=20_000)


class NameArguments(Record):
    """Arguments of `taxonomy`."""

    name: str | None = Field(None, description="A name of the tree; without it, the whole tree.")


@dataclass(frozen=True)
class Told:
    """What a tool says; `answer` is an answer that was found right."""

    text: str
    failed: bool = False
    answer: Diagnosis | None = None


class CaseTools:
    """The tools on one case; a context manager that ends the process of its queries."""

    def __init__(self, case: Case, queries: Queries | None = None) -> None:
        self.case, self.queries = case, queries or Queries(case)

    def __enter__(self) -> CaseTools:
        return self

    def __exit__(self, *_: object) -> None:
        self.queries.close()

    def call(self, name: str, arguments: Any) -> Told:
        """Use a tool; what it refuses comes back as text, for the model to mend."""
        try:
            tool = find(name)
            given = tool.arguments.model_validate({} if arguments is None else arguments)
            return tool.use(self, given)
        except ValidationError as error:
            return Told(str(record_error(error, name)), failed=True)
        except EvalHarnessError as error:
            return Told(str(error), failed=True)


def find(name: str) -> Tool:
    """Return a tool by name; raises InputError that lists those there are."""
    if name not in TOOLS:
        raise InputError(f"must be one of {list(TOOLS)}", where="tool", found=name)
    return TOOLS[name]


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        about: What it is for, as the model reads it.
        arguments: Record of what it takes.
        use: What it does.
    """

    about: str
    arguments: type[Record]
    use: Callable[[CaseTools, Any], Told]

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of its arguments."""
        return self.arguments.model_json_schema()


def _list_tables(tools: CaseTools, given: Nothing) -> Told:
    return Told(descriptions.tables(tools.case))


def _run_sql(tools: CaseTools, given: SqlArguments) -> Told:
    return Told(tools.queries.rows(given.sql))


def _read_configuration(tools: CaseTools, given: Nothing) -> Told:
    return Told(descriptions.configuration(tools.case))


def _taxonomy(tools: CaseTools, given: NameArguments) -> Told:
    return Told(descriptions.causes(given.name))


def check_diagnosis(tools: CaseTools, answer: Any) -> Told:
    """Check an answer's form, names and evidence; `answer` of the result is set if all hold."""
    diagnosis, wrong = problems(answer, tools.queries.evidence)
    if wrong or diagnosis is None:
        return Told("The diagnosis cannot be accepted:\n" + "\n".join(wrong), failed=True)
    return Told("The diagnosis follows the rules, and its numbers are found.", answer=diagnosis)


TOOLS: dict[str, Tool] = {
    "list_tables": Tool(
        "List the tables of the recording: columns with their meaning, rows, absent signals.",
        Nothing,
        _list_tables,
    ),
    "run_sql": Tool(
        "Run one SELECT (DuckDB) over the tables; shows at most 50 rows. The reference run's"
        " tables are reference.<table>. Functions that differ from call to call are refused.",
        SqlArguments,
        _run_sql,
    ),
    "read_configuration": Tool(
        "Read the job's public description: workload, topology, versions, configuration.",
        Nothing,
        _read_configuration,
    ),
    "taxonomy": Tool(
        "List the names of all causes as a tree, or read of one: mechanism, symptoms, decisive"
        " signals, and how to tell it from causes that look alike.",
        NameArguments,
        _taxonomy,
    ),
}
