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
from injectors.sim.run import Run
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
    host, start, end = (
        np.stack([getattr(found, name) for found in times], axis=1)  # (steps, ops, ranks)
        for name in ("host", "start", "end")
    )
    began, done = _noted(run, ops, clocks.of_ranks(start), clocks.of_ranks(end))
    present = _by_rank(host) >= 0
    there, (ranks, per_rank) = present.ravel(), present.shape
    number = np.tile(np.arange(per_rank) % len(ops), ranks)[there]
    started = pd.Series(_by_rank(began).ravel()[there], dtype="Int64")
    if run.job.machine.gpu is None:
        started[:] = pd.NA
    put_in = np.stack([payload(run, op) for op in ops], axis=1)
    return pd.DataFrame(
        {
            "rank": np.repeat(np.arange(ranks), per_rank)[there],
            "process_group": group,
            "seq": (np.cumsum(present, axis=1) - 1).ravel()[there],
            "op": _texts([operation(op) for op in ops], number),
            "bytes": _by_rank(put_in).ravel()[there],
            "dtype": _texts([element_type(op) for op in ops], number),
            "created_ns": _by_rank(clocks.of_ranks(host)).ravel()[there],
            "started_ns": started,
            "completed_ns": _by_rank(done).ravel()[there],
            "state": "completed",
        }
    )


def _noted(run: Run, ops: Sequence[Op], start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return what the recorder notes of times on the device, (steps, ops, ranks) each."""
    paths = np.array([noise.text_hash(op.path) for op in ops], np.uint64)
    steps, ranks = np.arange(len(start)), np.arange(start.shape[2])
    base = noise.extend(noise.key(run.job.seed, "flight recorder"), paths.view(np.int64))
    of = noise.extend(base[:, None], steps[:, None, None], ranks)
    late = noise.exponential_q16(of, LATE_NS)
    began, done = start + late // 2, end + late
    if run.job.machine.gpu is None:
        return began, done
    return began // US * US, done // US * US


def _by_rank(values: Ints) -> Ints:
    """Bring (steps, ops, ranks) into (ranks, steps * ops)."""
    return values.reshape(-1, values.shape[2]).T


def _texts(words: Sequence[str], number: Ints) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    return np.array(words, object)[number]


def element_type(op: Op) -> str:
    """Return torch's name of a collective's element type."""
    words = op.label.collective
    name = words.dtype if words else ""
    return ELEMENT_TYPES.get(name, name)
