"""The table `collectives`: what the flight recorder of every rank holds.

It tells microseconds, a little late: times of the device come from events that a watchdog reads.
gloo's recorder knows no start.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from injectors.sim import noise
from injectors.sim.clocks import Clocks
from injectors.sim.noise import Ints
from injectors.sim.program import Op
from injectors.sim.run import Collected, Run
from injectors.sim.tables.traffic import COMMUNICATION, operation, payload

US = 1000
GLOO_GROUPS = {"default_pg": "default"}  # as the recorder of CPU jobs names it
LATE_NS = 2_000  # mean lateness of what the recorder notes about the device
ELEMENT_TYPES = {
    "c10::BFloat16": "bfloat16",
    "c10::Half": "float16",
    "float": "float32",
    "double": "float64",
    "long int": "int64",
    "int": "int32",
}


def collective_table(run: Run, clocks: Clocks) -> pd.DataFrame:
    """Return the rows, one a rank and collective; empty where ranks never talk."""
    groups: dict[str, list[Op]] = {}
    names = GLOO_GROUPS if run.job.machine.gpu is None else {}
    for op in run.program.ops:
        if op.kind in COMMUNICATION and op.label.collective is not None:
            group = op.label.collective.group
            groups.setdefault(names.get(group, group), []).append(op)
    frames = [_rows(run, clocks, name, groups[name]) for name in sorted(groups)]
    if not frames:
        return pd.DataFrame()
    number = np.repeat(np.arange(len(frames)), [len(frame) for frame in frames])
    whole = pd.concat(frames, ignore_index=True)
    return whole.iloc[np.lexsort((whole["seq"], number, whole["rank"]))].reset_index(drop=True)


def _rows(run: Run, clocks: Clocks, group: str, ops: Sequence[Op]) -> pd.DataFrame:
    times = [run.collectives[op.path] for op in ops]
    present = _by_rank([found.host for found in times]) >= 0
    ranks, per_rank = present.shape
    number = np.tile(np.arange(per_rank) % len(ops), ranks)[present.ravel()]

    def column(arrays: Sequence[Ints]) -> Ints:
        return np.asarray(_by_rank(arrays).ravel()[present.ravel()])

    began, done = _device_times(run, clocks, ops, times)
    started = pd.Series(column(began), dtype="Int64")
    if run.job.machine.gpu is None:
        started[:] = pd.NA
    return pd.DataFrame(
        {
            "rank": np.repeat(np.arange(ranks), per_rank)[present.ravel()],
            "process_group": group,
            "seq": (np.cumsum(present, axis=1) - 1).ravel()[present.ravel()],
            "op": _texts([operation(op) for op in ops], number),
            "bytes": column([payload(run, op) for op in ops]),
            "dtype": _texts([element_type(op) for op in ops], number),
            "created_ns": column([clocks.of_ranks(found.host) for found in times]),
            "started_ns": started,
            "completed_ns": column(done),
            "state": "completed",
        }
    )


def _device_times(
    run: Run, clocks: Clocks, ops: Sequence[Op], times: Sequence[Collected]
) -> tuple[list[Ints], list[Ints]]:
    """Return when each op began and was done, as noted: (steps, ranks) each."""
    steps, ranks = np.arange(run.job.steps)[:, None], np.arange(run.program.ranks)
    began, done = [], []
    for op, found in zip(ops, times, strict=True):
        of = noise.keys(run.job.seed, "flight recorder", op.path, steps, ranks)
        late = noise.exponential_q16(of, LATE_NS)
        began.append(clocks.of_ranks(found.start) + late // 2)
        done.append(clocks.of_ranks(found.end) + late)
    if run.job.machine.gpu is None:
        return began, done
    return [one // US * US for one in began], [one // US * US for one in done]


def _by_rank(arrays: Sequence[Ints]) -> Ints:
    """Bring arrays (steps, ranks) of all ops into one, (ranks, steps * ops)."""
    stacked = np.stack(arrays, axis=1)  # (steps, ops, ranks)
    steps, ops, ranks = stacked.shape
    return stacked.reshape(steps * ops, ranks).T


def _texts(words: Sequence[str], number: Ints) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    return np.array(words, object)[number]


def element_type(op: Op) -> str:
    """Return torch's name of a collective's element type."""
    words = op.label.collective
    name = words.dtype if words else ""
    return ELEMENT_TYPES.get(name, name)
