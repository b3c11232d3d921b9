"""Clock skew: hosts write down times by clocks that are apart."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from cases.tables import TABLES
from harness.degrade.copies import CaseCopy, RunCopy
from harness.degrade.trace_text import Event, change, moved_us
from injectors.sim import noise

TIMES: dict[str, tuple[str, ...]] = {
    "steps": ("start_ns",),
    "collectives": ("created_ns", "started_ns", "completed_ns"),
    "gpu": ("time_ns",),
    "host": ("time_ns",),
    "network": ("time_ns",),
    "processes": ("time_ns",),
    "loader": ("start_ns",),
    "runtime": ("time_ns",),
    "logs": ("time_ns",),
}
NS_PER_US = 1000


def clock_skew(copy: CaseCopy, level: float, seed: int) -> CaseCopy:
    """Set the clocks of a job's hosts apart, each by its own offset; jobs on one host stay.

    The two clocks that are furthest apart differ by exactly `level`, and no clock is slow, so that
    no time becomes negative. The reference run was recorded on another day: it has other offsets.

    Args:
        copy: The case.
        level: Nanoseconds between the clocks that are furthest apart.
        seed: Of the offsets.
    """
    hosts = list(dict.fromkeys(place.host for place in copy.info.topology.ranks))
    if len(hosts) < 2:
        return copy
    key = noise.key(seed, "clock skew", copy.info.id)
    run, reference = (_offsets(hosts, int(level), noise.mix64(key + i)) for i in (0, 1))
    host_of = {place.rank: place.host for place in copy.info.topology.ranks}
    earlier = copy.reference and _skewed(copy.reference, host_of, reference)
    return copy.with_runs(_skewed(copy.run, host_of, run), earlier)


def _offsets(hosts: list[str], apart_ns: int, key: int) -> dict[str, int]:
    """Return each host's offset, from 0 to `apart_ns`, both of which one host has."""
    order = noise.permutation(key, len(hosts)).tolist()
    inner = noise.below(noise.extend(key, "inner", noise.permutation(key, len(hosts))), 2**16)
    shares = {hosts[place]: int(inner[place]) for place in order}
    shares |= {hosts[order[0]]: 0, hosts[order[-1]]: 2**16}
    return {host: apart_ns * share >> 16 for host, share in shares.items()}


def _skewed(run: RunCopy, host_of: Mapping[int, str], offsets: Mapping[str, int]) -> RunCopy:
    frames = {
        name: _shifted(name, run.frame(name), host_of, offsets)
        for name in TIMES
        if name in run.tables
    }
    traces = {rank: shifted(run.trace(rank), offsets[host_of[rank]]) for rank in run.traces}
    return run.with_tables(frames).with_traces(traces)


def _shifted(
    name: str, frame: pd.DataFrame, host_of: Mapping[int, str], offsets: Mapping[str, int]
) -> pd.DataFrame:
    by_host = "host" in TABLES[name].columns
    hosts = frame["host"] if by_host else frame["rank"].map(dict(host_of))
    own = hosts.map(dict(offsets)).astype("int64")
    return frame.assign(**{column: frame[column] + own for column in TIMES[name]})


def shifted(content: bytes, offset_ns: int) -> bytes:
    """Shift all times of one trace's JSON text."""

    def later(event: Event) -> None:
        if "ts" in event:
            event["ts"] = moved_us(event["ts"], offset_ns / NS_PER_US)

    return change(content, later) if offset_ns else content
