"""The order in which pipeline stages work through micro-batches: one forward, one backward."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Task(NamedTuple):
    """One half of a micro-batch on one stage."""

    stage: int
    half: Literal["forward", "backward"]
    micro_batch: int


def stage_order(stage: int, stages: int, micro_batches: int) -> list[Task]:
    """Return what one stage does (PipeDream-flush, Narayanan et al., 2021).

    It first goes forward as often as there are stages after it, then alternates, and last goes
    backward with what it still has.

    >>> [f"{task.half[0]}{task.micro_batch}" for task in stage_order(0, 2, 3)]
    ['f0', 'f1', 'b0', 'f2', 'b1', 'b2']
    """
    ahead = min(stages - stage - 1, micro_batches)
    order = [Task(stage, "forward", number) for number in range(ahead)]
    for number in range(ahead, micro_batches):
        order.append(Task(stage, "forward", number))
        order.append(Task(stage, "backward", number - ahead))
    rest = range(micro_batches - ahead, micro_batches)
    return order + [Task(stage, "backward", number) for number in rest]


def global_order(stages: int, micro_batches: int) -> list[Task]:
    """Merge the stages' orders so that nothing comes before what it needs from a neighbour."""
    left = [stage_order(stage, stages, micro_batches)[::-1] for stage in range(stages)]
    done: set[Task] = set()
    order: list[Task] = []
    while any(left):
        for tasks in left:
            while tasks and _needs(tasks[-1], stages) <= done:
                done.add(tasks[-1])
                order.append(tasks.pop())
    return order


def _needs(task: Task, stages: int) -> set[Task]:
    if task.half == "forward":
        return {task._replace(stage=task.stage - 1)} if task.stage else set()
    return {task._replace(stage=task.stage + 1)} if task.stage < stages - 1 else set()


def split(layers: int, stages: int, head_layers_q16: int, moved: int) -> list[int]:
    """Share layers out so that the last stage, which has the head too, does no more than others.

    Args:
        layers: To share out.
        stages: Of the pipeline.
        head_layers_q16: What the head costs, in layers.
        moved: Layers that the last stage has beyond that.

    Raises:
        ValueError: if a stage would have no layer.

    >>> split(15, 4, 2**16, 0), split(15, 4, 2**16, 2)
    ([4, 4, 4, 3], [4, 3, 3, 5])
    """
    even_q16 = ((layers << 16) + head_layers_q16) // stages
    last = (even_q16 - head_layers_q16 + 2**15 >> 16) + moved
    last = max(1, last) if stages > 1 else layers
    others = stages - 1
    found = [(layers - last + others - 1 - i) // others for i in range(others)] + [last]
    if min(found) < 1:
        raise ValueError(f"every stage must have a layer, got {found}")
    return found
