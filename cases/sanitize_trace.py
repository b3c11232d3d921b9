"""Making a profiler's trace fit to share: no machine, person, path or wall-clock time in it."""

from __future__ import annotations

import getpass
import gzip
import io
import math
import re
import socket
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from cases.errors import TraceError
from cases.kineto.compressed import GZIP_MAGIC, gunzip
from cases.kineto.decode import not_json
from cases.kineto.layout import Header
from cases.sanitize import scrub_text

MAX_RAW_BYTES = 2 * 2**30
KEPT = {*Header.__struct_fields__, "traceEvents"}
LIBRARY = re.compile(
    r"(?:[\w.~/\\: -]*[/\\])?(?:site-packages|dist-packages|lib/python3\.\d+)[/\\]"
)
DEVICE_LABEL = re.compile(r"GPU \d+")
SORT_INDICES = {"process_sort_index": "pid", "thread_sort_index": "tid"}
WHERE = "profiler's trace"
# Numbers of the profiler's own lists: nothing refers to them, and they are a fifth of a trace.
BOOKKEEPING = frozenset({"Ev Idx", "Record function id"})


def scrub_trace(
    raw: bytes,
    start_ns: int,
    *,
    hosts: Iterable[str] | None = None,
    users: Iterable[str] | None = None,
) -> bytes:
    """Scrub a Kineto trace and count its times from `start_ns`.

    Header fields off the reader's allow-list go (traceName, host_name, log lines). Strings
    lose absolute paths, host and user names and secrets; files of libraries stay relative to
    their folder. Events lose the profiler's book-keeping numbers. Process and thread numbers
    become 1, 2, ... in order of appearance (one numbering, so that a main thread keeps its
    process's number); device numbers, streams and named tracks stay.

    Args:
        raw: JSON as the profiler wrote it, gzipped or not.
        start_ns: Unix time that becomes 0; the trace's own base time is accounted for.
        hosts: Host names to take out; this machine's where not given.
        users: User names to take out; this process's where not given.

    Returns:
        Gzip-compressed JSON, the same bytes for the same trace.

    Raises:
        TraceError: `raw` is no Kineto trace.
    """
    trace = _parse(gunzip(raw, WHERE, MAX_RAW_BYTES) if raw.startswith(GZIP_MAGIC) else raw)
    names = [*(machine_names() if hosts is None else hosts), trace.get("host_name") or ""]
    clean = cleaner(names, user_names() if users is None else users)
    number = numbering(trace["traceEvents"])
    offset_ns = trace.get("baseTimeNanoseconds", 0) - start_ns
    events = [_event(event, clean, number, offset_ns) for event in trace["traceEvents"]]
    header = {name: clean(trace[name]) for name in trace if name in KEPT - {"traceEvents"}}
    header |= {"baseTimeNanoseconds": 0, "traceEvents": events}
    return compress(msgspec.json.encode(header))


def machine_names() -> list[str]:
    """The names of this machine, the longest first."""
    full = socket.gethostname()
    return [full, full.partition(".")[0]]


def user_names() -> list[str]:
    """The names of this process's user."""
    try:
        return [getpass.getuser(), Path.home().name]
    except (KeyError, OSError, RuntimeError):  # a container's user without a name
        return []


def compress(content: bytes) -> bytes:
    """Gzip without a time or name in the header."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()


def cleaner(hosts: Iterable[str], users: Iterable[str]) -> Callable[[Any], Any]:
    """A function that scrubs all strings within a JSON value, each distinct one once."""
    hosts, users = tuple(filter(None, hosts)), tuple(filter(None, users))

    @cache
    def text(value: str) -> str:
        return scrub_text(LIBRARY.sub("", value), hosts, users)

    def clean(value: Any) -> Any:
        if type(value) is str:
            return text(value)
        if type(value) is list:
            return [item if type(item) is int else clean(item) for item in value]
        if type(value) is dict:
            return {name: clean(item) for name, item in value.items()}
        return value

    return clean


def numbering(events: list[dict[str, Any]]) -> Callable[[Any], Any]:
    """Small numbers for process and thread ids; device pids keep theirs, text stays."""
    devices = {event["args"]["device"] for event in events if _on_device(event)}
    devices |= {event["pid"] for event in events if _names_device(event)}
    taken: dict[Any, Any] = {device: device for device in devices} | {0: 0, -1: -1}
    free = (n for n in range(1, 2**31) if n not in devices)

    def number(value: Any) -> Any:
        if type(value) is str and value.isdecimal():
            return str(number(int(value)))
        if type(value) is not int:
            return value
        if value not in taken:
            taken[value] = next(free)
        return taken[value]

    return number


def _on_device(event: dict[str, Any]) -> bool:
    return "device" in (event.get("args") or {}) and event["args"]["device"] == event.get("pid")


def _names_device(event: dict[str, Any]) -> bool:
    labels = (event.get("args") or {}).get("labels")
    return isinstance(labels, str) and DEVICE_LABEL.fullmatch(labels) is not None


def _event(
    event: dict[str, Any], clean: Callable[[Any], Any], number: Callable[[Any], Any], offset_ns: int
) -> dict[str, Any]:
    result = {
        name: value if name in ("ph", "ts", "dur", "id") else clean(value)
        for name, value in event.items()
    }
    if isinstance(args := result.get("args"), dict):
        result["args"] = {name: args[name] for name in args if name not in BOOKKEEPING}
    if "ts" in event:
        result["ts"] = shifted_us(event["ts"], offset_ns)
    pid, tid = event.get("pid"), event.get("tid")
    if "pid" in event:
        result["pid"] = number(pid)
    if "tid" in event and number(pid) != pid:  # on a device the tid is a stream
        result["tid"] = number(tid)
    if event.get("ph") == "M":
        _renumber_metadata(event, result, number)
    return result


def _renumber_metadata(
    event: dict[str, Any], result: dict[str, Any], number: Callable[[Any], Any]
) -> None:
    """Process and thread metadata repeat the ids in their arguments."""
    args = result.get("args") or {}
    own = event.get(SORT_INDICES.get(event.get("name", ""), ""))
    if own is not None and args.get("sort_index") == own:
        args["sort_index"] = number(own)
    if event.get("name") == "thread_name" and "tid" in event and "name" in args:
        old, new = str(event["tid"]), str(result["tid"])
        args["name"] = re.sub(rf"\b{re.escape(old)}\b", new, str(args["name"]))


def shifted_us(ts_us: float, offset_ns: int) -> float:
    """Move a time in us by `offset_ns`, in whole ns.

    >>> shifted_us(5219573234634.123, -5219573234000000)
    634.123
    """
    whole = math.floor(ts_us)
    return (whole * 1000 + round((ts_us - whole) * 1000) + offset_ns) / 1000


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        trace = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise not_json(error, raw, WHERE) from None
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise TraceError("must be an object with a list of traceEvents", where=WHERE)
    for index, event in enumerate(trace["traceEvents"]):
        if not isinstance(event, dict) or type(event.get("ts", 0)) not in (int, float):
            field = f"traceEvents.{index}"
            raise TraceError(
                "must be an event with a numeric ts", where=WHERE, field=field, found=event
            )
    return trace
