"""What a diagnoser gets: one case, its tables and traces read on first use.

case = Case.open(folder)
slow = case.steps["duration_ns"].median() / case.reference.steps["duration_ns"].median()
case.sql("SELECT rank, avg(data_wait_ns) AS wait_ns FROM steps GROUP BY rank")
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

import pandas as pd
import pyarrow as pa

from cases.errors import BundleError, InputError
from cases.layout import RunFiles, read_layout
from cases.schema import CaseInfo, Scalar
from cases.table_files import read_table, to_frame
from cases.tables import SIGNALS, TABLES

if TYPE_CHECKING:
    from cases.sql import Database

MAX_ROWS = 1_000_000


class SignalTable:
    """A recording's table as a DataFrame, loaded on first use.

    An absent table is an empty DataFrame with the declared columns. Integer columns are int64
    where complete and Int64 where values are missing.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self.__doc__ = TABLES[name].about

    @overload
    def __get__(self, recording: None, owner: type) -> SignalTable: ...
    @overload
    def __get__(self, recording: Recording, owner: type) -> pd.DataFrame: ...

    def __get__(self, recording: Recording | None, owner: type) -> SignalTable | pd.DataFrame:
        """Load the table and keep it in the instance, which hides this descriptor."""
        if recording is None:
            return self
        frame = to_frame(recording.arrow(self._name))
        recording.__dict__[self._name] = frame
        return frame


class Recording:
    """The signals of one run."""

    steps = SignalTable()
    collectives = SignalTable()
    gpu = SignalTable()
    host = SignalTable()
    network = SignalTable()
    processes = SignalTable()
    loader = SignalTable()
    runtime = SignalTable()
    logs = SignalTable()
    requests = SignalTable()
    engine = SignalTable()
    jobs = SignalTable()

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._arrow: dict[str, pa.Table] = {}
        self._traces: dict[int, pd.DataFrame] = {}

    def has(self, signal: str) -> bool:
        """Whether a signal (a table, or `trace_events`) was recorded."""
        if signal not in SIGNALS:
            raise InputError(f"must be one of {list(SIGNALS)}", where="signal", found=signal)
        return signal in self._files.signals

    @property
    def table_paths(self) -> Mapping[str, Path]:
        """Files of the recorded tables by name."""
        return self._files.tables

    def arrow(self, name: str) -> pa.Table:
        """One table as Arrow, empty where it is absent."""
        if name not in self._arrow:
            path = self._files.tables.get(name)
            schema = TABLES[name].schema
            self._arrow[name] = read_table(path, name) if path else schema.empty_table()
        return self._arrow[name]

    @property
    def trace_ranks(self) -> tuple[int, ...]:
        """Ranks whose trace was recorded."""
        return tuple(sorted(self._files.traces))

    def kineto_path(self, rank: int) -> Path:
        """File of one rank's trace, as the profiler or the simulator wrote it."""
        if rank not in self._files.traces:
            must = f"must be a rank with a trace ({list(self.trace_ranks)})"
            raise InputError(must, where="trace", found=rank)
        return self._files.traces[rank]

    def trace(self, rank: int) -> pd.DataFrame:
        """Events of one rank's trace, see `cases.kineto.Trace.events`."""
        from cases.kineto import read_trace

        if rank not in self._traces:
            path = self.kineto_path(rank)
            trace = read_trace(path)
            if trace.rank not in (None, rank):
                raise BundleError(f"must be the trace of rank {rank}", where=path, found=trace.rank)
            self._traces[rank] = trace.events.assign(rank=rank)
        return self._traces[rank]

    @cached_property
    def trace_events(self) -> pd.DataFrame:
        """Events of all ranks, one after the other; empty where no trace was recorded."""
        from cases.kineto import TRACE_EVENTS

        frames = [self.trace(rank) for rank in self.trace_ranks]
        if not frames:
            return to_frame(TRACE_EVENTS.schema.empty_table())
        events = pd.concat(frames, ignore_index=True)
        texts = [name for name, (kind, _) in TRACE_EVENTS.columns.items() if kind == "text"]
        # Ranks differ in their categories, and pandas then falls back to plain objects.
        return events.astype(dict.fromkeys(texts, "category"))


class Case(Recording):
    """One case: its public description, its signals and those of its reference run."""

    def __init__(self, info: CaseInfo, files: RunFiles, reference: RunFiles | None) -> None:
        super().__init__(files)
        self.info = info
        self.reference = Recording(reference) if reference else None

    @classmethod
    def open(cls, folder: Path | str) -> Case:
        """Open a case's folder; raises BundleError or RecordError if it breaks the layout."""
        files = read_layout(Path(folder))
        return cls(files.info, files.run, files.reference)

    @property
    def config(self) -> Mapping[str, Scalar]:
        """The job's own configuration."""
        return self.info.environment.config

    def sql(self, query: str, limit: int = MAX_ROWS) -> pd.DataFrame:
        """Run one SELECT over the tables, `trace_events` and `reference.<table>`.

        Absent tables are empty. Raises QueryError if the query is not one SELECT, fails, or
        gives more than `limit` rows.
        """
        return self._database.query(query, limit)

    @cached_property
    def _database(self) -> Database:
        from cases.sql import Database

        return Database(self, self.reference)
