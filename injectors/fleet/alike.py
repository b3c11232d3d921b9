"""Jobs that are alike in all that honestly decides how long a step takes."""

from __future__ import annotations

import numpy as np

from injectors.fleet.fleet import Texts
from injectors.fleet.steps import run
from injectors.fleet.world import World
from injectors.sim.noise import Ints


def kinds(world: World, long: Ints) -> Texts:
    """Name each job's kind: model, configuration, card, ranks, and size of its inputs.

    Args:
        world: The period.
        long: Whether each job's inputs are to be taken as long.
    """
    columns = world.columns
    parts = (*(columns[c] for c in ("model", "config", "gpu_model", "ranks")), long)
    return np.array(["/".join(map(str, row)) for row in zip(*parts, strict=True)], dtype=object)


def typical_ns(world: World) -> Ints:
    """Step time that a job's owner expects: the healthy mean of jobs alike, whole ns.

    Where owners are blind to the inputs' size they expect what short ones take.
    """
    step, long = run(world).step_ns, world.jobs.long
    usual = _means(kinds(world, long), step)
    asked = kinds(world, np.zeros_like(long) if world.traffic.blind else long)
    found = [usual.get(kind, own) for kind, own in zip(asked, step.tolist(), strict=True)]
    return np.array(found, dtype=np.int64)


def ratio_to_alike(world: World, step_ns: Ints, before: World, before_ns: Ints) -> float:
    """Mean step of a period over what jobs alike took in another; kinds of both only."""
    usual = _means(kinds(before, before.jobs.long), before_ns)
    own = zip(kinds(world, world.jobs.long), step_ns.tolist(), strict=True)
    pairs = [(int(step), usual[kind]) for kind, step in own if kind in usual]
    return sum(step for step, _ in pairs) / sum(past for _, past in pairs)


def _means(kind: Texts, step_ns: Ints) -> dict[str, int]:
    """Whole mean of each kind."""
    sums: dict[str, tuple[int, int]] = {}
    for name, step in zip(kind, step_ns.tolist(), strict=True):
        total, count = sums.get(name, (0, 0))
        sums[name] = total + step, count + 1
    return {name: total // count for name, (total, count) in sums.items()}
