"""Where the files of a case lie, and the refusal of everything that should not lie there.

case.json
signals/<table>.parquet
traces/rank<N>.json.gz
reference/signals/..., reference/traces/...     an earlier healthy run of the same job
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from cases.documents import read_record
from cases.errors import BundleError
from cases.schema import CaseInfo
from cases.tables import SIGNALS, TABLES, TRACE_SIGNAL

CASE_FILE = "case.json"
REFERENCE = "reference"
TRACE_NAME = re.compile(r"rank(0|[1-9]\d{0,5})\.json\.gz")
MAX_FILES = 100_000


@dataclass(frozen=True)
class RunFiles:
    """The files of one run: its tables by name and its traces by rank."""

    tables: dict[str, Path] = field(default_factory=dict)
    traces: dict[int, Path] = field(default_factory=dict)

    @property
    def signals(self) -> set[str]:
        """Names of the signals that these files hold."""
        return {*self.tables, *({TRACE_SIGNAL} if self.traces else ())}


@dataclass(frozen=True)
class CaseFiles:
    """A case's description and the files that it is allowed to have."""

    info: CaseInfo
    run: RunFiles
    reference: RunFiles | None


def trace_name(rank: int) -> str:
    """File name of one rank's trace.

    >>> trace_name(3)
    'rank3.json.gz'
    """
    return f"rank{rank}.json.gz"


def read_layout(folder: Path) -> CaseFiles:
    """Read case.json and list the case's files; their content is not read yet.

    Raises:
        BundleError: a file is missing, undeclared, not a plain file, or misnamed.
        RecordError: case.json breaks its record.
    """
    files = plain_files(folder)
    if files.pop(CASE_FILE, None) is None:
        raise BundleError("must exist", where=folder / CASE_FILE)
    info = read_record(folder / CASE_FILE, CaseInfo)
    run, reference = RunFiles(), RunFiles()
    for name, path in files.items():
        inner = name.removeprefix(f"{REFERENCE}/")
        _place(inner, path, reference if inner != name else run, len(info.topology.ranks))
    _check_signals(folder, info, run, reference)
    return CaseFiles(info, run, reference if reference.signals else None)


def plain_files(folder: Path) -> dict[str, Path]:
    """All files below `folder` by relative name; links, sockets and the like are refused."""
    if not folder.is_dir():
        raise BundleError("must be a case's folder", where=folder)
    found: dict[str, Path] = {}
    waiting = [folder]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise BundleError("must be a plain file or folder", where=path)
            if path.is_dir():
                waiting.append(path)
            else:
                found[path.relative_to(folder).as_posix()] = path
        if len(found) + len(waiting) > MAX_FILES:
            raise BundleError(f"must hold at most {MAX_FILES} files", where=folder)
    return found


def _place(name: str, path: Path, run: RunFiles, ranks: int) -> None:
    folder, _, file = name.rpartition("/")
    trace = TRACE_NAME.fullmatch(file)
    if folder == "signals" and file.removesuffix(".parquet") in TABLES and "." in file:
        run.tables[file.removesuffix(".parquet")] = path
    elif folder == "traces" and trace and int(trace[1]) < ranks:
        run.traces[int(trace[1])] = path
    else:
        raise BundleError("must be a declared table or the trace of a known rank", where=path)


def _check_signals(folder: Path, info: CaseInfo, run: RunFiles, reference: RunFiles) -> None:
    where, present = folder / CASE_FILE, set(info.signals.present)

    def must(holds: bool, rule: str, field: str, found: object) -> None:
        if not holds:
            raise BundleError(rule, where=where, field=field, found=found)

    unknown = sorted((present | set(info.signals.absent)) - set(SIGNALS))
    must(not unknown, f"must be among {list(SIGNALS)}", "signals", unknown)
    both = sorted(present & set(info.signals.absent))
    must(not both, "must not be both present and absent", "signals", both)
    missing, extra = sorted(present - run.signals), sorted(run.signals - present)
    must(not missing, "must have the files of all signals it names", "signals.present", missing)
    must(not extra, "must name every signal that has files", "signals.present", extra)
    extra = sorted(reference.signals - present)
    must(not extra, "must name every signal of the reference run", "signals.present", extra)
    regression = info.question == "regression"
    rule = "must have a reference run if, and only if, it asks about a regression"
    must(regression == bool(reference.signals), rule, "question", info.question)
