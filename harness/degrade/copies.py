"""One case as it is being degraded: its description, and where each of its tables and traces is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
import pyarrow as pa

from cases.kineto.compressed import gunzip
from cases.schema import CaseInfo, Signals
from cases.table_files import read_table, to_frame
from cases.tables import SIGNALS, TRACE_SIGNAL, to_arrow
from cases.trace_files import MAX_UNPACKED_BYTES


@dataclass(frozen=True)
class RunCopy:
    """One run: each table and trace is the original's file, or what stands in its place.

    Attributes:
        tables: By name; a table that was changed is here as Arrow.
        traces: By rank; a trace that was changed is here as its JSON text.
    """

    tables: Mapping[str, Path | pa.Table] = field(default_factory=dict)
    traces: Mapping[int, Path | bytes] = field(default_factory=dict)

    @property
    def signals(self) -> set[str]:
        """Names of the signals that are left."""
        return {*self.tables, *({TRACE_SIGNAL} if self.traces else ())}

    def frame(self, name: str) -> pd.DataFrame:
        """Read one table; integers are Int64 where values are missing."""
        table = self.tables[name]
        return to_frame(read_table(table, name) if isinstance(table, Path) else table)

    def trace(self, rank: int) -> bytes:
        """Read one rank's trace as JSON text."""
        trace = self.traces[rank]
        return _unpacked(trace) if isinstance(trace, Path) else trace

    def with_tables(self, frames: Mapping[str, pd.DataFrame]) -> RunCopy:
        """Put other rows in place of those of some tables."""
        changed = {name: to_arrow(name, frame) for name, frame in frames.items()}
        return replace(self, tables={**self.tables, **changed})

    def with_traces(self, traces: Mapping[int, bytes]) -> RunCopy:
        """Put other JSON text in place of some traces."""
        return replace(self, traces={**self.traces, **traces})

    def without(self, signals: Collection[str]) -> RunCopy:
        """Leave signals out."""
        tables = {name: table for name, table in self.tables.items() if name not in signals}
        return RunCopy(tables, {} if TRACE_SIGNAL in signals else self.traces)


@dataclass(frozen=True)
class CaseCopy:
    """One case: as it was recorded if all of its content is files, else degraded.

    Attributes:
        digests: Content digest of each of the original's files.
    """

    info: CaseInfo
    run: RunCopy
    reference: RunCopy | None
    digests: Mapping[Path, str]

    @property
    def present(self) -> tuple[str, ...]:
        """Signals that the case has, in the order of SIGNALS."""
        return in_order(self.info.signals.present)

    @property
    def ranks(self) -> int:
        """How many ranks the job has."""
        return len(self.info.topology.ranks)

    @property
    def answerable(self) -> bool:
        """Whether anything is left to look at, and to compare with where that is the question."""
        left = self.run.signals if self.reference is None else self.reference.signals
        return bool(self.run.signals and left)

    def with_runs(self, run: RunCopy, reference: RunCopy | None) -> CaseCopy:
        """Put other content in place; the description then names the signals that are left."""
        left = run.signals
        if reference is not None:
            reference = reference.without(reference.signals - left)
        gone = set(self.info.signals.present) - left
        signals = Signals(
            present=tuple(name for name in self.info.signals.present if name in left),
            absent=in_order({*self.info.signals.absent, *gone}),
        )
        update: dict[str, object] = {"signals": signals}
        if TRACE_SIGNAL in gone:  # who has no trace can't know what the profiler cost
            update["provenance"] = self.info.provenance.model_copy(
                update={"profiler_overhead": None}
            )
        return replace(self, info=self.info.model_copy(update=update), run=run, reference=reference)


def in_order(signals: Iterable[str]) -> tuple[str, ...]:
    """Sort signals as SIGNALS does.

    >>> in_order({"trace_events", "host", "steps"})
    ('steps', 'host', 'trace_events')
    """
    return tuple(sorted(signals, key=SIGNALS.index))


def _unpacked(path: Path) -> bytes:
    return gunzip(path.read_bytes(), path, MAX_UNPACKED_BYTES)
