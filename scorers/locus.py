"""Where: resolving loci through the topology and deciding whether a named place is right."""

from __future__ import annotations

import re
from typing import Literal

from cases.schema import Locus, RankPlace, Topology

Kind = Literal["job", "rank", "link", "op", "request_class", "segment"]
Names = frozenset[int | str]
WORKER = re.compile(r"rank(\d+)/")


def kind_of(locus: Locus) -> Kind:
    """Return which rule judges a fault that sits at `locus`.

    Hosts, stages, GPUs and loader workers are judged by their ranks.
    """
    if locus.scope in ("stage", "host", "gpu", "worker", "rank"):
        return "rank"
    return locus.scope  # type: ignore[return-value]


def named(locus: Locus, kind: Kind, topology: Topology) -> Names:
    """Return what `locus` names in the terms of one rule; empty if it names nothing there.

    >>> place = RankPlace(rank=0, host="host0")
    >>> named(Locus(scope="host", hosts=("host0",)), "rank", Topology(ranks=(place,)))
    frozenset({0})
    """
    if kind in ("job", "rank"):
        return _ranks(locus, topology)
    if kind == "segment":
        return frozenset(repr(sorted(segment.items())) for segment in _segments(locus))
    if locus.scope != kind:
        return frozenset()
    by_kind = {"link": locus.links, "op": locus.ops, "request_class": locus.request_classes}
    return frozenset(by_kind[kind])


def is_right(found: Names, true: Names, kind: Kind, topology: Topology) -> bool:
    """Decide whether the named places `found` are right for the true places.

    With R = found, L = true and N places in all: Jaccard |R∩L|/|R∪L| >= 0.5 and
    |R∩L|/|L| - |R\\L|/(N-|L|) >= 0.5, whose second term is 0 when N = |L|. A job-wide fault
    needs all ranks. The number of operators is unknown, so they need the Jaccard index
    alone; request classes and segments must be equal, a segment in all of its columns and their
    values. Exact in integers.
    """
    if kind == "job":
        return found >= {place.rank for place in topology.ranks}
    if kind in ("request_class", "segment"):
        return found == true
    both, either = len(found & true), len(found | true)
    if 2 * both < either or not both:
        return False
    if kind == "op":
        return True
    total = len(topology.ranks) if kind == "rank" else len(topology.links)
    size, extra, others = len(true), len(found - true), total - len(true)
    if others <= 0:
        return 2 * both >= size
    return 2 * (both * others - extra * size) >= size * others


def covers_half(found: Names, true: Names) -> bool:
    """Decide whether at least half of the true places were named."""
    return 2 * len(found & true) >= len(true)


def _segments(locus: Locus) -> list[dict[str, str]]:
    """Read a locus as segments of the `jobs` table; a host or a GPU is one of its own column."""
    match locus.scope:
        case "segment":
            return [locus.segment]
        case "host":
            return [{"machine": name} for name in locus.hosts]
        case "gpu":
            return [{"gpu_serial": name.rpartition("/")[2]} for name in locus.gpus]
        case _:
            return []


def _ranks(locus: Locus, topology: Topology) -> Names:
    """Resolve to ranks; a name that the topology lacks stays, as a place that is wrong."""
    match locus.scope:
        case "job":
            return frozenset(place.rank for place in topology.ranks)
        case "rank":
            return frozenset(locus.ranks)
        case "worker":
            return frozenset(_worker_rank(name) for name in locus.workers)
        case "link":
            ends = {link.name: link.ranks for link in topology.links}
            return frozenset(r for name in locus.links for r in ends.get(name, (name,)))
        case "stage" | "host" | "gpu":
            wanted: tuple[int | str, ...] = locus.stages or locus.hosts or locus.gpus
            return frozenset(r for name in wanted for r in _on(name, locus.scope, topology))
        case _:
            return frozenset()


def _worker_rank(name: str) -> int | str:
    match = WORKER.match(name)
    return int(match[1]) if match else name


def _on(name: int | str, scope: str, topology: Topology) -> tuple[int | str, ...]:
    found = tuple(p.rank for p in topology.ranks if name in _names_of(p, scope))
    return found or (f"{scope} {name}",)


def _names_of(place: RankPlace, scope: str) -> tuple[int | str | None, ...]:
    if scope == "gpu":
        return () if place.gpu is None else (place.gpu, f"{place.host}/{place.gpu}")
    return (place.host,) if scope == "host" else (place.stage,)
