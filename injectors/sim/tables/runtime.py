"""The table `runtime`: what Python, the compiler and the allocator of each rank report."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from cases.tables import TABLES
from injectors.sim import noise
from injectors.sim.clocks import Clocks
from injectors.sim.job import ONE
from injectors.sim.noise import Ints
from injectors.sim.run import Run
from injectors.sim.tables.events import event_rows
from injectors.sim.tables.loads import load_events, sequence

YOUNG_EVERY_NS = 1_500_000_000  # between collections of a rank's youngest objects, on average
YOUNG_NS, MIDDLE_NS = 70_000, 1_300_000
MIDDLE_Q16 = 6554  # one in ten takes the middle generation, too
FULL = 2  # generation of a full collection
SIZE_EVERY = 4  # steps until images have a size that was not there before


def runtime_table(run: Run, clocks: Clocks) -> pd.DataFrame:
    """Return the rows, in the hosts' times; the columns stand even where nothing happened."""
    frames = [*_pauses(run), *_young_collections(run), *_left_eager(run), *_sizes(run)]
    frames += [*load_events(run)]
    found = [frame for frame in frames if len(frame)]
    if not found:
        return pd.DataFrame(columns=list(TABLES["runtime"].columns))
    whole = pd.concat(found, ignore_index=True)
    rank = whole["rank"].to_numpy()
    whole["time_ns"] = clocks.of_hosts(whole["time_ns"].to_numpy(), clocks.host[rank])
    return whole


def pauses_ns(run: Run, name: str) -> Ints:
    """Return how long ranks stood still for a named reason, (steps, ranks)."""
    if name not in run.program.pauses:
        return np.zeros(run.step_ns.shape, np.int64)
    row = run.program.pauses.index(name)
    return np.stack([found.pause_ns[row] for found in run.conditions])


def _pauses(run: Run) -> Iterator[pd.DataFrame]:
    one = np.ones(run.step_ns.shape, np.int64)
    for name, event, value, detail in (
        ("gc", "gc", one * FULL, ""),
        ("recompile", "recompile", one, _reason(run)),
        ("retry", "allocator_retry", one, ""),
    ):
        length = pauses_ns(run, name)
        at = run.pauses.get(f"pause/{name}")
        if at is not None:
            told, there = None if event == "allocator_retry" else length, (length > 0) & (at >= 0)
            again = np.arange(len(there))[:, None] > 0
            yield event_rows(event, at, value, told, detail, where=there & again)
            # What is compiled in the first step has no guard that failed.
            first = "" if run.job.compiler.first_ns else detail
            yield event_rows(event, at, value, told, first, where=there & ~again)


def _reason(run: Run) -> str:
    """Return how dynamo words a guard on a size that has changed."""
    usual = sequence(run.job)
    return (
        f"tensor 'L['tokens']' size mismatch at index 1. expected {usual}, actual {usual - 8}"
        if usual > 1
        else "tensor 'L['images']' size mismatch at index 2. expected 224, actual 208"
    )


def _young_collections(run: Run) -> Iterator[pd.DataFrame]:
    """Small collections, which every Python process has now and then."""
    shape = run.step_ns.shape
    steps, ranks = np.arange(shape[0])[:, None], np.arange(shape[1])
    of = noise.keys(run.job.seed, "young objects", steps, ranks)
    chance = run.step_ns * ONE // YOUNG_EVERY_NS
    middle = noise.uniform_q16(noise.extend(of, "generation")) < MIDDLE_Q16
    usual = np.where(middle, MIDDLE_NS, YOUNG_NS)
    length = noise.scale_q16(usual, noise.factor_q16(noise.extend(of, "length"), ONE // 8))
    part = noise.uniform_q16(noise.extend(of, "when"))
    at = run.marks["end"] - noise.scale_q16(run.step_ns, part)
    happened = noise.uniform_q16(of) < chance
    yield event_rows("gc", at, middle.astype(np.int64), length, where=happened)


def _left_eager(run: Run) -> Iterator[pd.DataFrame]:
    """Functions that dynamo gave up before; it told so when the job started."""
    names = eager_functions(run)
    if not names:
        return
    first = np.zeros(run.step_ns.shape, bool)
    first[0] = True
    count = np.full(run.step_ns.shape, len(names))
    yield event_rows(
        "recompile_limit", run.marks["end"], count, detail=", ".join(names), where=first
    )


def eager_functions(run: Run) -> list[str]:
    """Return the layers that are left eager of a model that is compiled otherwise."""
    share, layers = run.job.framework.compiled_share_q16, run.job.workload.config().get("layers")
    if not 0 < share < ONE or not isinstance(layers, int):
        return []
    compiled = share * layers >> 16
    return [f"layer{number}.forward" for number in range(max(compiled, 1), layers)]


def _sizes(run: Run) -> Iterator[pd.DataFrame]:
    """Edge lengths of images, which are cropped: some steps bring one that was not there yet."""
    config = run.job.workload.config()
    edge = config.get("pixels", config.get("edge"))
    if not isinstance(edge, int) or config.get("sizes") == 1 or not run.program.batches:
        return
    fresh = np.array([_is_fresh(run, step) for step in range(run.job.steps)])
    seen = np.cumsum(fresh)
    again = noise.uniform_q16(noise.keys(run.job.seed, "size", np.arange(len(fresh))))
    number = np.where(fresh, seen - 1, again * seen >> 16)
    sizes = np.maximum(edge - number, 1)
    value = np.broadcast_to(sizes[:, None], run.step_ns.shape)
    yield event_rows("input_size", run.taken[:, 0], value, detail="pixels of an edge")


def _is_fresh(run: Run, step: int) -> bool:
    """Whether a step brings a new size: at the steps that tune for it, tuned or not."""
    every = run.job.compiler.autotune_every or SIZE_EVERY
    of = noise.keys(run.job.seed, "pause", "autotune", step // every, 0)
    return step == 0 or int(noise.below(of, every)[0]) == step % every
