"""Missing ranks: nothing was collected from some of a job's processes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pandas as pd

from cases.tables import TABLES
from harness.degrade.copies import CaseCopy, RunCopy
from injectors.sim import noise


def missing_ranks(copy: CaseCopy, level: float, seed: int) -> CaseCopy:
    """Leave out all that came from a share of the ranks, the same in the reference run.

    At least one rank is missing and at least one is left; jobs of one rank stay as they are. A
    host all of whose ranks are missing has no samples either. Higher levels miss more of the
    same ranks.

    Args:
        copy: The case.
        level: Share of ranks that are missing.
        seed: Of which ranks they are.
    """
    missing = chosen(copy, level, seed)
    if not missing:
        return copy
    places = copy.info.topology.ranks
    hosts = {place.host for place in places} - {p.host for p in places if p.rank not in missing}
    reference = copy.reference and _left(copy.reference, missing, hosts)
    return copy.with_runs(_left(copy.run, missing, hosts), reference)


def chosen(copy: CaseCopy, level: float, seed: int) -> list[int]:
    """Return the ranks that are missing at a level, sorted."""
    if copy.ranks < 2:
        return []
    count = min(copy.ranks - 1, max(1, int(level * copy.ranks + 0.5)))
    order = noise.permutation(noise.key(seed, "missing ranks", copy.info.id), copy.ranks)
    return sorted(order[:count].tolist())


def _left(run: RunCopy, missing: Collection[int], hosts: Collection[str]) -> RunCopy:
    frames: dict[str, pd.DataFrame] = {}
    gone: list[str] = []
    for name in run.tables:
        frame = run.frame(name)
        kept = _kept(name, frame, missing, hosts)
        if len(frame) and not kept.any():
            gone.append(name)
        elif not kept.all():
            frames[name] = frame.loc[kept]
    traces = {rank: trace for rank, trace in run.traces.items() if rank not in missing}
    return replace(run.without(gone), traces=traces).with_tables(frames)


def _kept(
    name: str, frame: pd.DataFrame, missing: Collection[int], hosts: Collection[str]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    kept = np.ones(len(frame), dtype=bool)
    if "rank" in TABLES[name].columns:
        kept &= ~frame["rank"].isin(list(missing)).to_numpy(bool)
    if "host" in TABLES[name].columns:
        kept &= ~frame["host"].isin(list(hosts)).to_numpy(bool)
    return kept
