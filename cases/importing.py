"""Making a case of traces that somebody else recorded: read, scrubbed, described.

A case made so holds traces and no tables. Ranks are those that the traces state; where a single
trace states none it is rank 0's. Of hosts a trace tells nothing, so ranks are laid out over hosts
with as many devices as the trace lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cases.bundle import RunData, write_case
from cases.digest import bytes_digest, document_digest
from cases.errors import InputError
from cases.kineto import Trace, read_trace
from cases.kineto.compressed import gunzip
from cases.sanitize import scrub_text
from cases.sanitize_trace import MAX_RAW_BYTES, machine_names, scrub_trace, user_names
from cases.schema import CaseInfo
from cases.tables import SIGNALS, TRACE_SIGNAL

ENDINGS = (".json", ".json.gz")
RANK_IN_NAME = re.compile(r"(?:rank|worker)[-_]?(\d+)")
Kind = Literal["training", "inference"]


@dataclass(frozen=True)
class ImportOptions:
    """What cannot be read from a trace.

    Attributes:
        kind: What the job does.
        title: One line on the job, neutral as to what is wrong with it.
        objective: What is asked, where there is no reference run to compare with.
        names: Hosts and users to take out, beside those of this machine and of the traces.
    """

    kind: Kind = "training"
    title: str = ""
    objective: str = "Say what keeps the job from being faster."
    names: tuple[str, ...] = ()


def import_case(
    source: Path, suite: Path, options: ImportOptions, reference: Path | None = None
) -> CaseInfo:
    """Write a case of the traces at `source` into the folder of a suite.

    Args:
        source: A Kineto file, gzipped or not, or a folder with one a rank.
        suite: Folder that the case's folder is made in.
        options: What the traces do not tell.
        reference: The same of an earlier healthy run of the same job; makes it a regression case.

    Returns:
        The case's description; its id follows from the traces' content.

    Raises:
        InputError: there is no trace, two of one rank, or the case is there already.
        TraceError: a trace is none, or too damaged to be read.
    """
    traces = _read(source)
    packed = _scrubbed(source, traces, options)
    before = _scrubbed(reference, _read(reference), options) if reference else {}
    found = [[rank, bytes_digest(gunzip(p, source, MAX_RAW_BYTES))] for rank, p in packed.items()]
    case_id = document_digest(found).removeprefix("sha256:")[:12]
    info = _describe(case_id, [trace for _, trace in traces.values()], sorted(traces), options)
    if reference:
        info = info.model_copy(update={"question": "regression", "objective": None})
    if (suite / case_id).exists():
        raise InputError("must not have been imported before", where=source, found=case_id)
    write_case(suite / case_id, info, {}, packed, RunData(traces=before) if reference else None)
    return info


def _files(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    found = sorted(path for path in source.iterdir() if path.name.endswith(ENDINGS))
    if not found:
        raise InputError(f"must hold files named {' or '.join(ENDINGS)}", where=source)
    return found


def _read(source: Path) -> dict[int, tuple[Path, Trace]]:
    """Read the traces by rank."""
    files = _files(source)
    traces: dict[int, tuple[Path, Trace]] = {}
    for path in files:
        trace = read_trace(path)
        rank = trace.rank if trace.rank is not None else _rank_by_name(path, alone=len(files) == 1)
        if rank in traces:
            must = f"must be the only trace of rank {rank}, as is {traces[rank][0].name}"
            raise InputError(must, where=path)
        traces[rank] = path, trace
    return dict(sorted(traces.items()))


def _rank_by_name(path: Path, alone: bool) -> int:
    named = RANK_IN_NAME.search(path.name)
    if not named and not alone:
        raise InputError("must state a rank, inside or in its name (rank3.json.gz)", where=path)
    return int(named[1]) if named and not alone else 0


def _scrubbed(
    source: Path, traces: dict[int, tuple[Path, Trace]], options: ImportOptions
) -> dict[int, bytes]:
    """Scrub the traces; time 0 is the first event of any rank."""
    starts = [
        trace.base_time_ns + int(trace.events["start_ns"].min())
        for _, trace in traces.values()
        if len(trace.events)
    ]
    if not starts:
        raise InputError("must hold events", where=source)
    names = {"hosts": [*machine_names(), *options.names], "users": [*user_names(), *options.names]}
    return {
        rank: scrub_trace(path.read_bytes(), min(starts), **names)
        for rank, (path, _) in traces.items()
    }


def _describe(
    case_id: str, traces: list[Trace], ranks: list[int], options: ImportOptions
) -> CaseInfo:
    world = max([ranks[-1] + 1, *(trace.world_size or 0 for trace in traces)])
    devices = [d for trace in traces for d in [trace.metadata.get("deviceProperties")] if d]
    per_host = len(devices[0]) if devices else max(world, 1)
    on_gpu = any((trace.events["category"] == "kernel").any() for trace in traces)
    places = [
        {
            "rank": rank,
            "host": f"host{rank // per_host}",
            "gpu": f"host{rank // per_host}/gpu{rank % per_host}" if on_gpu else None,
        }
        for rank in range(world)
    ]
    many = f"{world} rank{'s' if world > 1 else ''}"
    document = {
        "id": case_id,
        "title": _clean(options.title, options.names) or f"Imported {options.kind} job, {many}",
        "kind": options.kind,
        "shape": "snapshot",
        "question": "audit",
        "objective": options.objective,
        "workload": {"name": "imported"},
        "topology": {"ranks": places},
        "environment": {"hardware": _hardware(devices)},
        "signals": {
            "present": [TRACE_SIGNAL],
            "absent": [signal for signal in SIGNALS if signal != TRACE_SIGNAL],
        },
        "provenance": {"backend": "imported"},
    }
    return CaseInfo.model_validate(document)


def _hardware(devices: list[list[dict[str, object]]]) -> dict[str, str]:
    name = devices[0][0].get("name") if devices else None
    return {"gpu": str(name)} if name else {}


def _clean(text: str, names: Iterable[str]) -> str:
    names = tuple(names)
    return scrub_text(text, [*machine_names(), *names], [*user_names(), *names])
