"""From a case's folder to a copy in memory, and from that to a folder again."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa

from cases.bundle import Suite
from cases.digest import bytes_digest, case_digest, table_digest
from cases.documents import link_or_copy, read_json, write_record
from cases.errors import BundleError
from cases.layout import CASE_FILE, REFERENCE, RunFiles, read_layout, trace_name
from cases.table_files import read_table, write_table
from cases.trace_files import trace_digest
from harness.degrade.copies import CaseCopy, RunCopy

COMPRESSION = 1  # of traces that are read once and thrown away


def read_copy(suite: Suite, case_id: str) -> CaseCopy:
    """Read one case of a suite as it was recorded.

    Raises:
        BundleError: its content is not what suite.json says.
    """
    folder = suite.case_folder(case_id)
    files = read_layout(folder)
    digests = _digests(files.run) | _digests(files.reference or RunFiles())
    copy = CaseCopy(
        files.info,
        RunCopy(files.run.tables, files.run.traces),
        RunCopy(files.reference.tables, files.reference.traces) if files.reference else None,
        digests,
    )
    stated = suite.info.cases[case_id]
    found = _digest(copy, read_json(folder / CASE_FILE))
    if found != stated:
        raise BundleError(f"must have the digest {stated}", where=folder, found=found)
    return copy


def copy_digest(copy: CaseCopy) -> str:
    """Digest of the case that `write_copy` writes; files of the original aren't read again."""
    return _digest(copy, copy.info.model_dump(mode="json", exclude_none=True))


def write_copy(copy: CaseCopy, folder: Path) -> None:
    """Write a case's folder: links to what is untouched, files for what is not."""
    _write_run(copy.run, folder)
    if copy.reference is not None:
        _write_run(copy.reference, folder / REFERENCE)
    write_record(folder / CASE_FILE, copy.info)


def _digests(run: RunFiles) -> dict[Path, str]:
    tables = {path: table_digest(name, read_table(path, name)) for name, path in run.tables.items()}
    return tables | {path: trace_digest(path) for path in run.traces.values()}


def _digest(copy: CaseCopy, document: dict[str, object]) -> str:
    reference = copy.reference
    return case_digest(
        document,
        _run_digests(copy.run, copy),
        _run_digests(reference, copy) if reference and reference.signals else None,
    )


def _run_digests(run: RunCopy, copy: CaseCopy) -> dict[str, str]:
    tables = {
        name: copy.digests[table] if isinstance(table, Path) else table_digest(name, table)
        for name, table in run.tables.items()
    }
    traces = {
        trace_name(rank): copy.digests[trace] if isinstance(trace, Path) else bytes_digest(trace)
        for rank, trace in run.traces.items()
    }
    return tables | traces


def _write_run(run: RunCopy, folder: Path) -> None:
    for name, table in run.tables.items():
        _put(table, folder / "signals" / f"{name}.parquet")
    for rank, trace in run.traces.items():
        _put(trace, folder / "traces" / trace_name(rank))


def _put(content: Path | pa.Table | bytes, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Path):
        link_or_copy(content, path)
    elif isinstance(content, bytes):
        path.write_bytes(gzip.compress(content, COMPRESSION, mtime=0))
    else:
        write_table(path, content, quick=True)
