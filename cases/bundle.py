"""Bundles: writing cases so that they are whole or absent, and reading suites of them.

<suite>/suite.json
<suite>/<case_id>/...        see cases.layout
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

import pandas as pd

from cases.case import Case
from cases.digest import case_digest, document_digest, suite_digest, table_digest
from cases.documents import read_json, read_record, write_record
from cases.errors import BundleError, InputError
from cases.layout import CASE_FILE, REFERENCE, RunFiles, plain_files, read_layout, trace_name
from cases.schema import CaseInfo, SuiteInfo
from cases.table_files import read_table, write_table
from cases.tables import TABLES, to_arrow
from cases.trace_files import trace_digest, write_trace

SUITE_FILE = "suite.json"
PACKAGED = Path(__file__).parent / "corpus"


class Taxonomy(Protocol):
    """What a suite's digest needs to know of the taxonomy."""

    @property
    def version(self) -> str:
        """Version, as suite.json states it."""

    @property
    def digest(self) -> str:
        """Digest of the taxonomy's content."""


@dataclass(frozen=True)
class RunData:
    """What was recorded of one run: tables by name, gzip-compressed Kineto traces by rank."""

    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    traces: Mapping[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredReference:
    """The reference run of a case that was written before, for another one that has the same.

    Attributes:
        case: Folder of that case.
    """

    case: Path

    @cached_property
    def digests(self) -> dict[str, str]:
        """Digests of its tables and traces, read once."""
        files = read_layout(self.case).reference
        return _run_digests(files) if files else {}


def write_case(
    folder: Path,
    info: CaseInfo,
    tables: Mapping[str, pd.DataFrame],
    traces: Mapping[int, bytes],
    reference: RunData | StoredReference | None,
    quick: bool = False,
) -> str:
    """Write one case and return its digest; a half-written folder never appears.

    Args:
        folder: The new folder, named as `info.id`.
        info: The public description; `signals.present` must name what is given here.
        tables: Signal tables by name.
        traces: Gzip-compressed Kineto traces by rank.
        reference: The reference run of a regression case, None for an audit case.
        quick: Rather fast than small, and not read again; the digest is the same.
    """
    if folder.name != info.id:
        raise BundleError("must be named as the case's id", where=folder, found=info.id)
    if folder.exists():
        raise BundleError("must not exist yet", where=folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        write_record(beside / CASE_FILE, info)
        run = _write_run(beside, RunData(tables, traces), quick)
        before = _write_reference(beside / REFERENCE, reference, quick)
        digest = _digest(beside, run, before or None) if quick else read_case_digest(beside)
        beside.chmod(0o755)
        beside.rename(folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return digest


def _write_reference(
    folder: Path, reference: RunData | StoredReference | None, quick: bool
) -> dict[str, str]:
    if isinstance(reference, StoredReference):
        shutil.copytree(reference.case / REFERENCE, folder)
        return reference.digests
    return _write_run(folder, reference or RunData(), quick)


def _write_run(folder: Path, run: RunData, quick: bool) -> dict[str, str]:
    """Write tables and traces; returns the digests of what was meant to be written."""
    digests = {}
    for name, frame in run.tables.items():
        if name not in TABLES:
            raise BundleError(f"must be among {list(TABLES)}", where=folder, found=name)
        table = to_arrow(name, frame)
        write_table(folder / "signals" / f"{name}.parquet", table, quick)
        digests[name] = table_digest(name, table)
    for rank, packed in run.traces.items():
        path = folder / "traces" / trace_name(rank)
        write_trace(path, packed, quick)
        digests[trace_name(rank)] = trace_digest(path)
    return digests


def read_case_digest(folder: Path) -> str:
    """Compute a case's digest, reading and checking all of its files."""
    files = read_layout(folder)
    reference = _run_digests(files.reference) if files.reference else None
    return case_digest(read_json(folder / CASE_FILE), _run_digests(files.run), reference)


def _digest(folder: Path, run: Mapping[str, str], reference: Mapping[str, str] | None) -> str:
    """The same from the digests of a case's parts; its files are there, but are not read."""
    read_layout(folder)
    return case_digest(read_json(folder / CASE_FILE), run, reference)


def _run_digests(run: RunFiles) -> dict[str, str]:
    tables = {name: table_digest(name, read_table(path, name)) for name, path in run.tables.items()}
    traces = {trace_name(rank): trace_digest(path) for rank, path in run.traces.items()}
    return tables | traces


class Suite:
    """A folder of cases whose content digests suite.json states."""

    def __init__(self, folder: Path, info: SuiteInfo) -> None:
        self.folder, self.info = folder, info
        self._verified: dict[str, frozenset[tuple[str, int, int]]] = {}

    @classmethod
    def open(cls, folder: Path) -> Suite:
        """Read suite.json; cases are read when they are asked for."""
        return cls(folder, read_record(folder / SUITE_FILE, SuiteInfo))

    @property
    def case_ids(self) -> tuple[str, ...]:
        """Ids of all cases, sorted."""
        return tuple(sorted(self.info.cases))

    def case_folder(self, case_id: str) -> Path:
        """Folder of one case; an unknown id is an error that lists those there are."""
        if case_id not in self.info.cases:
            known = ", ".join(self.case_ids)
            raise InputError(f"must be a case of {self.info.name} ({known})", found=case_id)
        return self.folder / case_id

    def case(self, case_id: str) -> Case:
        """Open one case; its tables and traces are read on first use."""
        folder = self.case_folder(case_id)
        case = Case.open(folder)
        if case.info.id != case_id:
            where = folder / CASE_FILE
            raise BundleError(f"must be {case_id}", where=where, field="id", found=case.info.id)
        return case

    @property
    def unlisted(self) -> tuple[str, ...]:
        """Folders beside the cases that suite.json does not list."""
        return tuple(sorted(set(_case_folders(self.folder)) - set(self.info.cases)))

    def verify_case(self, case_id: str) -> None:
        """Raise BundleError unless one case's content is what suite.json says.

        Content that was found right is read again only when one of its files has changed.
        """
        folder = self.case_folder(case_id)
        state = _state(folder)
        if self._verified.get(case_id) == state:
            return
        stated, found = self.info.cases[case_id], read_case_digest(folder)
        if found != stated:
            raise BundleError(
                f"must have the digest {stated}", where=self.folder / case_id, found=found
            )
        self._verified[case_id] = state

    def verify(self) -> None:
        """Raise BundleError unless the cases are exactly those of suite.json, unaltered."""
        where, extra = self.folder / SUITE_FILE, self.unlisted
        if extra:
            raise BundleError("must list every case", where=where, field="cases", found=extra)
        for case_id in self.case_ids:
            self.verify_case(case_id)


def _state(folder: Path) -> frozenset[tuple[str, int, int]]:
    """Name, inode and time of change of every file: what no change of content leaves as it was."""
    stats = {name: path.stat() for name, path in plain_files(folder).items()}
    return frozenset((name, stat.st_ino, stat.st_ctime_ns) for name, stat in stats.items())


def write_suite_info(
    folder: Path,
    name: str,
    title: str,
    labels_kind: Literal["public", "private_seed"],
    taxonomy: Taxonomy,
    labels_folder: Path,
    known: Mapping[str, str] | None = None,
) -> SuiteInfo:
    """Write suite.json from the cases, labels and taxonomy as they are now.

    Args:
        folder, name, title, labels_kind, taxonomy: Of the suite.
        labels_folder: Where its labels lie.
        known: Digests of cases that need not be read again.
    """
    known = known or {}
    cases = {
        case_id: known.get(case_id) or read_case_digest(folder / case_id)
        for case_id in _case_folders(folder)
    }
    if not cases:
        raise BundleError("must hold at least one case", where=folder)
    info = SuiteInfo(
        name=name,
        title=title,
        taxonomy_version=taxonomy.version,
        digest=suite_digest(cases, truth_digests(labels_folder, cases), taxonomy.digest),
        cases=cases,
        labels=labels_kind,
    )
    write_record(folder / SUITE_FILE, info)
    return info


def truth_digests(labels_folder: Path, case_ids: Iterable[str]) -> dict[str, str]:
    """Digests of the label documents of the given cases; an imported case may have none."""
    files = {case_id: labels_folder / f"{case_id}.json" for case_id in sorted(case_ids)}
    return {
        case_id: document_digest(read_json(file))
        for case_id, file in files.items()
        if file.is_file()
    }


def find_suite(name_or_path: str | Path) -> Path:
    """Return the folder of a suite given by path or by name.

    Names are looked up among the packaged suites and in
    `$XDG_CACHE_HOME/evalharness/suites`; an unknown one is an error that lists those there are.
    """
    path = Path(name_or_path)
    if (path / SUITE_FILE).is_file():
        return path.resolve()
    known = {
        folder.name: folder
        for root in (_cached_suites(), PACKAGED)
        if root.is_dir()
        for folder in sorted(root.iterdir())
        if (folder / SUITE_FILE).is_file()
    }
    if str(name_or_path) not in known:
        names = ", ".join(sorted(known)) or "none are installed"
        raise InputError(
            f"must be the folder of a suite or one of its names ({names})",
            where="suite",
            found=str(name_or_path),
        )
    return known[str(name_or_path)]


def _case_folders(folder: Path) -> list[str]:
    return sorted(
        path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
    )


def cache_folder() -> Path:
    """Folder that suites built on demand go to, below it `suites/<suite>` and `labels/<suite>`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evalharness"


def _cached_suites() -> Path:
    return cache_folder() / "suites"
