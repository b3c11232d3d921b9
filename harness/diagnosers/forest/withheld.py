"""What a case lacks that cases like it usually have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cases.case import Case
from cases.tables import TABLES, TRACE_SIGNAL


def measured_signals(case: Case) -> list[str]:
    """Columns (`table.column`) with any value, and `trace_events` where there are traces."""
    found = [TRACE_SIGNAL] if case.trace_ranks else []
    for name in case.table_paths:
        table = case.arrow(name)
        if len(table):
            nulls = {column: table[column].null_count for column in TABLES[name].columns}
            found += [f"{name}.{column}" for column, n in nulls.items() if n < len(table)]
    return found


def kind_of(case: Case) -> str:
    """Jobs of one kind usually record the same: kind, and whether there is a network."""
    hosts = {place.host for place in case.info.topology.ranks}
    return f"{case.info.kind}/{'one host' if len(hosts) == 1 else 'hosts'}"


def withheld(case: Case, usual: Mapping[str, Sequence[str]]) -> list[str]:
    """Usual signals that the case lacks: a table as a whole, or columns of it."""
    return lacking(measured_signals(case), usual.get(kind_of(case), ()))


def lacking(measured: Sequence[str], usual: Sequence[str]) -> list[str]:
    """Which usual signals were not measured.

    >>> lacking(["gpu.rank"], ["gpu.power_w", "gpu.rank", "host.cores"])
    ['gpu.power_w', 'host']
    """
    tables = {signal.split(".")[0] for signal in measured}
    missing = [signal for signal in usual if signal not in set(measured)]
    named = [s if s.split(".")[0] in tables else s.split(".")[0] for s in missing]
    return list(dict.fromkeys(named))


def likely_candidates(missing: Sequence[str], known: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Candidates of the undecidable cases that lack most nearly the same tables."""
    tables = {signal.split(".")[0] for signal in missing}

    def alike(key: str) -> float:
        other = set(key.split(","))
        return len(tables & other) / max(len(tables | other), 1)

    return known[max(known, key=alike)] if known else ()
