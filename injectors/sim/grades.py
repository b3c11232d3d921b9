"""From a grade in the matrix to the parameters of an injection: where it acts, and how strongly.

Jobs of the matrix differ tenfold in the length of a step, so most strengths are given as multiples
of what a job has: "0.5 step_ms", "1.5 sequence".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from injectors.sim import noise
from injectors.sim.job import Places
from injectors.workloads.base import Workload

MULTIPLE = re.compile(r"([0-9.]+) ([a-z_]+)")
LENGTHS = ("step_s", "step_ms", "round_ms")  # all other multiples are whole
PLACES = 3


def units(workload: Workload, step_ms: float) -> dict[str, float]:
    """Return what grades may be multiples of.

    These are a step in "step_s", "step_ms" and "step_us", "round_ms" in which every worker of the
    loader must deliver a batch, and the numbers among the workload's parameters.
    """
    numbers = {
        name: value
        for name, value in workload.model_dump().items()
        if isinstance(value, int) and not isinstance(value, bool)
    }
    return {
        **numbers,
        "step_s": step_ms / 1000,
        "step_ms": step_ms,
        "step_us": step_ms * 1000,
        "round_ms": step_ms * max(numbers.get("workers", 1), 1),
    }


def placed(
    parameters: Mapping[str, Any],
    places: Places,
    key: int,
    what: str,
    of: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Fill in where an injection acts, as the group draws it, and multiples of `of`.

    Raises:
        LookupError: The job has no such place: no other host, or no other rank on the host.
        ValueError: A value is a multiple of something unknown.

    >>> placed({"extra_ms": "0.5 step_ms"}, Places(8, 8), 0, "x", {"step_ms": 68.0})
    {'extra_ms': 34.0}
    """
    drawn = _drawn(places, noise.key(key, what))
    return {name: _value(value, drawn, of or {}) for name, value in parameters.items()}


def _value(value: Any, drawn: Mapping[str, Any], of: Mapping[str, float]) -> Any:
    if not isinstance(value, str):
        return value
    if value in drawn:
        if drawn[value] is None:
            raise LookupError(f"this job has no {value}")
        return drawn[value]
    match = MULTIPLE.fullmatch(value)
    if match is None:
        return value
    times, unit = match.groups()
    if unit not in of:
        raise ValueError(f"must be a multiple of one of {sorted(of)}, got {value!r}")
    found = float(times) * of[unit]
    return round(found, PLACES) if unit in LENGTHS else round(found)


def _drawn(places: Places, draw: int) -> dict[str, Any]:
    rank = draw % places.ranks
    here = places.host(rank)
    after, before = (here + 1) % places.hosts, (here - 1) % places.hosts
    near = places.ranks_of_host(after if draw // 5 % 2 else before)
    beside = [other for other in places.ranks_of_host(here) if other != rank]
    chosen = beside[draw // 11 % len(beside)] if beside else None
    return {
        "$rank": rank,
        "$host": here,
        "$peer": near[draw // 7 % len(near)] if places.hosts > 1 else None,
        "$beside": chosen,
        "$pair": sorted([rank, chosen]) if chosen is not None else None,
    }
