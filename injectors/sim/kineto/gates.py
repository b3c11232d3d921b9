"""What must hold of every simulated trace; each check says what it found instead.

for problem in problems(json.loads(gzip.decompress(packed))): ...
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
ON_HOST = ("cpu_op", "user_annotation", "python_function")
SLACK_NS = 1_000  # by which work of a stream may seem to overlap
JOIN_NS = 60_000  # by which clocks of hosts and devices may be apart
GRAPH = "cudaGraphLaunch"


def problems(trace: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with one trace."""
    events = trace["traceEvents"]
    yield from overlaps(events)
    yield from repeated(events)
    yield from unpaired(events)
    yield from crossing(events)


def ns(time_us: float) -> int:
    """Return whole ns of a time in us with three decimals."""
    return round(time_us * 1000)


def _ranges(events: Sequence[Event], categories: Sequence[str]) -> dict[Any, list[Event]]:
    """Ranges of some categories by process and thread (or device and stream), by start."""
    found: dict[Any, list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event.get("cat") in categories:
            found[event["pid"], event["tid"]].append(event)
    for own in found.values():
        own.sort(key=lambda event: (ns(event["ts"]), -ns(event["dur"])))
    return found


def overlaps(events: Sequence[Event]) -> Iterator[str]:
    """Yield work that begins while its stream is still busy."""
    for (device, stream), own in _ranges(events, ON_DEVICE).items():
        busy_until = 0
        for event in own:
            start = ns(event["ts"])
            if start < busy_until - SLACK_NS:
                yield f"{event['name']} begins {busy_until - start} ns early on {device}/{stream}"
            busy_until = max(busy_until, start + ns(event["dur"]))


def repeated(events: Sequence[Event]) -> Iterator[str]:
    """Yield correlations that two calls, or (outside of graphs) two kernels share."""
    graphs = {e["args"]["correlation"] for e in events if e.get("name") == GRAPH}
    for categories, allowed in ((CALLS, set()), (ON_DEVICE, graphs)):
        counts = Counter(
            event["args"]["correlation"] for event in events if event.get("cat") in categories
        )
        for number, count in counts.items():
            if count > 1 and number not in allowed:
                yield f"correlation {number} is of {count} events in {categories}"


def unpaired(events: Sequence[Event]) -> Iterator[str]:
    """Yield arrows without their other end, or whose ends lie on no event."""
    anchored = {
        (event["pid"], event["tid"], ns(event["ts"])) for event in events if event["ph"] == "X"
    }
    ends: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for event in events:
        if event["ph"] in "sf":
            ends[event["cat"], event["id"]][event["ph"]] += 1
            if (event["pid"], event["tid"], ns(event["ts"])) not in anchored:
                yield f"{event['cat']} {event['id']}: no event where it is bound"
    graphs = {e["args"]["correlation"] for e in events if e.get("name") == GRAPH}
    for (category, number), counts in ends.items():
        if counts["s"] != 1 or (counts["f"] != 1 and number not in graphs):
            yield f"{category} {number} has {counts['s']} begins and {counts['f']} ends"


def crossing(events: Sequence[Event]) -> Iterator[str]:
    """Yield ranges of a thread that begin inside of another and end outside."""
    for lane, own in _ranges(events, (*ON_HOST, *CALLS)).items():
        open_until: list[tuple[int, str]] = []
        for event in own:
            start, end = ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])
            while open_until and open_until[-1][0] <= start:
                open_until.pop()
            if open_until and end > open_until[-1][0]:
                late, around = end - open_until[-1][0], open_until[-1][1]
                yield f"{event['name']} ends {late} ns after {around} around it on {lane}"
            open_until.append((end, event["name"]))


def apart(traces: Mapping[int, Mapping[str, Any]]) -> Iterator[str]:
    """Yield collectives of all given ranks that do not overlap in time on all of them."""
    joined: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for trace in traces.values():
        for event in trace["traceEvents"]:
            args = event.get("args") or {}
            if event.get("cat") == "kernel" and "Collective name" in args:
                start = ns(event["ts"])
                key = args["Process Group Ranks"], args["Seq"]
                joined[key].append((start, start + ns(event["dur"])))
    for (group, number), ends in joined.items():
        last_start, first_end = max(s for s, _ in ends), min(e for _, e in ends)
        if last_start > first_end + JOIN_NS:
            yield f"collective {number} of {group} ended before its last rank came"
