"""What a case and the taxonomy say of themselves, as text for a model."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow.parquet as pq

from cases.case import Case, Recording
from cases.kineto import TRACE_EVENTS
from cases.layout import REFERENCE
from cases.tables import TABLES, TRACE_SIGNAL, Table
from cases.taxonomy import Taxonomy
from harness.diagnosers.case_tools.places import MOST_IN_FULL, described, spans


def tables(case: Case) -> str:
    """Describe the case's tables: columns, rows, and which signals are absent."""
    return "\n".join(_tables(case))


def _tables(case: Case) -> Iterator[str]:
    yield (
        "Times are integer nanoseconds since the run's start. Tables of the healthy earlier run,"
        f" where there is one, are {REFERENCE}.<table>."
    )
    for name in case.info.signals.present:
        table = TRACE_EVENTS if name == TRACE_SIGNAL else TABLES[name]
        yield ""
        yield f"{name} ({_rows(case, name)}): {_about(name, table)}"
        yield from (f"  {column} {kind}: {what}" for column, (kind, what) in table.columns.items())
    yield ""
    absent = ", ".join(case.info.signals.absent) or "nothing"
    yield f"Not recorded, and empty where a query names it: {absent}"


def _about(name: str, table: Table) -> str:
    return (
        table.about if name != TRACE_SIGNAL else "Events of the profiler's traces. " + table.about
    )


def _rows(case: Case, name: str) -> str:
    here, before = _count(case, name), None
    if case.reference is not None:
        before = _count(case.reference, name)
    return here if before is None else f"{here}; {REFERENCE}: {before}"


def _count(run: Recording, name: str) -> str:
    """Rows as the file's footer states them; a trace is too costly to read for that."""
    if name == TRACE_SIGNAL:
        return f"ranks {spans(run.trace_ranks)}"
    path = run.table_paths.get(name)
    return f"{pq.read_metadata(path).num_rows if path else 0} rows"


def configuration(case: Case) -> str:
    """Return all that case.json says: the job, its topology, versions and configuration."""
    document = case.info.model_dump(mode="json", exclude_none=True)
    if len(case.info.topology.ranks) <= MOST_IN_FULL:
        return json.dumps(document, ensure_ascii=False)
    document["topology"] = {
        "parallelism": case.info.topology.parallelism,
        "ranks": f"{len(case.info.topology.ranks)}, see below",
    }
    return f"{json.dumps(document, ensure_ascii=False)}\n{described(case.info.topology)}"


def causes(name: str | None = None) -> str:
    """Return the tree of names with their titles, or all about one of them.

    Raises:
        InputError: there is no such name; lists close ones.
    """
    taxonomy = Taxonomy.load()
    if name is None:
        depth = {node: len(taxonomy.ancestors(node)) for node in taxonomy.nodes}
        return "\n".join(f"{'  ' * depth[n]}{n}: {taxonomy.title(n)}" for n in taxonomy.nodes)
    node = taxonomy.resolve(name)
    if node not in taxonomy.causes:
        below = "\n".join(f"  {n}: {taxonomy.title(n)}" for n in taxonomy.children(node))
        return f"{node}: {taxonomy.title(node)}\n{below}"
    return "\n".join(_cause(taxonomy, node))


def _cause(taxonomy: Taxonomy, name: str) -> Iterator[str]:
    cause = taxonomy.causes[name]
    yield f"{name} (in {' / '.join(reversed(taxonomy.ancestors(name)))}): {cause.title}"
    yield cause.mechanism
    yield f"symptoms: {'; '.join(cause.symptoms)}"
    yield f"decisive signals: {', '.join(cause.decisive_signals)}"
    for other in cause.confused_with:
        yield f"confused with {other.cause}: {other.discriminator}"
    yield from (rule.rule for rule in taxonomy.tie_breaks if name in rule.causes)
