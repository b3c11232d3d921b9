"""Where a cause sits, from how likely each rank is to be its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
import pandas as pd

from cases.case import Case
from cases.schema import JOB, Locus, RankPlace, Scope
from harness.diagnosers.features.arrays import Floats, combined, floats_of, ints_of, rows_where
from harness.diagnosers.features.loaders import USUAL

Name = TypeVar("Name", int, str)
NEAR = 0.5  # of the likeliest place; others beyond it are named, too
NEAR_LINK = 0.85


def locate(case: Case, scope: Scope, likely: Floats) -> Locus:
    """Name the places of `scope` that are likeliest.

    Args:
        likely: One probability a rank, in the order of ranks.
    """
    places = case.info.topology.ranks
    if scope == "rank":
        return Locus(scope="rank", ranks=tuple(best(likely, lambda place: place.rank, places)))
    if scope == "gpu" and all(place.gpu for place in places):
        named = best(likely, lambda place: str(place.gpu), places)
        return Locus(scope="gpu", gpus=tuple(named))
    if scope == "host":
        return Locus(scope="host", hosts=tuple(best(likely, lambda place: place.host, places)))
    if scope == "stage" and all(place.stage is not None for place in places):
        named_stages = best(likely, lambda place: int(place.stage or 0), places)
        return Locus(scope="stage", stages=tuple(named_stages))
    if scope == "link" and case.info.topology.links:
        return Locus(scope="link", links=tuple(links(case, likely)))
    if scope == "worker" and len(case.arrow("loader")):
        return Locus(scope="worker", workers=(slowest_worker(case, int(np.argmax(likely))),))
    return JOB


def best(
    likely: Floats, name: Callable[[RankPlace], Name], places: Iterable[RankPlace]
) -> list[Name]:
    """Names whose ranks are on average at least half as likely as the likeliest."""
    means = pd.Series(likely).groupby([name(place) for place in places]).mean()
    return list(means.index[means >= NEAR * means.max()])


def links(case: Case, likely: Floats) -> list[str]:
    """Links whose ranks, at the less likely end, are nearly as likely as any link's."""
    host = {place.rank: place.host for place in case.info.topology.ranks}
    scores = {}
    for link in case.info.topology.links:
        ends = pd.Series([likely[rank] for rank in link.ranks])
        scores[link.name] = float(ends.groupby([host[rank] for rank in link.ranks]).mean().min())
    most = max(scores.values())
    return [name for name, score in scores.items() if score >= NEAR_LINK * most]


def slowest_worker(case: Case, rank: int) -> str:
    """The loader worker of a rank whose batches take the longest."""
    table = case.arrow("loader")
    own = rows_where(table, ints_of(table, "rank") == rank)
    worker = ints_of(own, "worker")
    workers = combined(worker)
    times = workers.quantile(floats_of(own, "fetch_ns"), USUAL)
    slowest = int(workers.common(worker)[int(np.argmax(times))]) if len(times) else 0
    return f"rank{rank}/worker{slowest}"
