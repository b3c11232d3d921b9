"""From a job to its server: the model, the engines and the paths between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from injectors.sim.costs import Costs
from injectors.sim.job import Job
from injectors.sim.program import Program
from injectors.sim.recent import Recent
from injectors.sim.serving.model import Model, pool_blocks
from injectors.sim.serving.part import engine_part
from injectors.sim.serving.program import compile_engine
from injectors.sim.serving.replica import Replica, Step
from injectors.sim.serving.router import warm_keys
from injectors.sim.serving.server import Server
from injectors.sim.serving.transfers import Paths

Observe = Callable[[Replica, Step], None]
WRITTEN = Recent[str, Program](8)


@runtime_checkable
class Serves(Protocol):
    """A workload that serves a model."""

    def model(self, tensor: int) -> Model:
        """Return the model as each of `tensor` ranks has it."""
        ...


def model_of(job: Job) -> Model:
    """Return the model that a job serves; raises TypeError if it serves none."""
    if not isinstance(job.workload, Serves):
        raise TypeError(f"workload must serve a model, got {type(job.workload).__name__}")
    return job.workload.model(job.places.tensor)


def prefill_engines(job: Job) -> int:
    """Engines that only compute prompts: half of them where there are two pools."""
    if not job.serving.disaggregated:
        return 0
    if job.serving.engines < 2:
        raise ValueError(f"engines must be at least 2 for two pools, got {job.serving.engines}")
    return job.serving.engines // 2


def engine_name(job: Job, number: int) -> str:
    """Name of an engine as tables have it."""
    if not job.serving.disaggregated:
        return f"engine{number}"
    return f"{'prefill' if number < prefill_engines(job) else 'decode'}{number}"


def engine_program(job: Job, model: Model) -> Program:
    """Write an engine's step, or remember it: all seeds of a job have the same."""
    settings = repr(
        (
            job.framework,
            job.network,
            job.host.op_ns,
            job.serving.draft_tokens,
            job.serving.draft_cost_q16,
            job.machine.name,
            model,
        )
    )
    return WRITTEN.get(settings, lambda: compile_engine(engine_part(job, 0), model))


def replicas(job: Job, backend: str = "auto") -> list[Replica]:
    """Make the engines, with the prefixes in their caches that they have met before."""
    model = model_of(job)
    blocks, prefilling = pool_blocks(job, model), prefill_engines(job)
    entry = prefilling or job.serving.engines
    program = engine_program(job, model)
    found = []
    for number in range(job.serving.engines):
        part = engine_part(job, number)
        replica = Replica(engine_name(job, number), part, program, blocks, backend)
        if number < entry:
            replica.warm(warm_keys(job.serving, job.seed, number, entry))
        found.append(replica)
    return found


def server(
    job: Job, backend: str = "auto", observe: Observe = lambda replica, step: None
) -> Server:
    """Make the server of a job, at time zero."""
    model, costs = model_of(job), Costs(job.machine, job.framework)
    per_token = model.layers * model.kv_elements() * model.tensor * costs.element_bytes
    engines, prefilling = replicas(job, backend), prefill_engines(job)
    return Server(job, engines, prefilling, Paths(job, prefilling, per_token), observe)
