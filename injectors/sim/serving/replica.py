"""One engine at work: its queue, its memory, and its ranks in the op engine.

A step is planned when the engine is free and something waits; the op engine then says how long
each rank takes for it, and its end brings tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from injectors.sim import noise
from injectors.sim.conditions import Dynamics
from injectors.sim.engine import Engine
from injectors.sim.job import ONE, Job
from injectors.sim.program import Conditions, LoaderShape, Program, StepTimes
from injectors.sim.serving.blocks import BlockPool
from injectors.sim.serving.host_time import HostTime
from injectors.sim.serving.plan import Part, Plan
from injectors.sim.serving.program import BEGIN, END, SCHEDULED
from injectors.sim.serving.request import BLOCK_TOKENS, Request
from injectors.sim.serving.scheduler import Limits, Scheduler
from injectors.sim.serving.work import StepWork

UNCUT = 1 << 30  # tokens of a step where prompts are not cut


@dataclass(frozen=True)
class Level:
    """How full the engine is once a step is planned."""

    running: int
    waiting: int
    usage: float


@dataclass(frozen=True)
class Step:
    """An engine step that has been timed; times in ns.

    Attributes:
        number: Of the engine's steps.
        begin_ns, end_ns: From the start of scheduling until its tokens are there.
        scheduler_ns: Host time before the model ran.
        jit_ns: Part of that in which code was compiled.
        accepted: Drafted tokens that were right.
    """

    number: int
    plan: Plan
    level: Level
    begin_ns: int
    scheduler_ns: int
    jit_ns: int
    end_ns: int
    accepted: int = 0


def limits(job: Job) -> Limits:
    """Return what the job's settings allow an engine."""
    serving = job.serving
    return Limits(
        max_num_seqs=serving.max_running,
        max_num_batched_tokens=serving.chunk_tokens or UNCUT,
        reserve=serving.reserve_answers,
        prefix_cache=serving.prefix_cache,
        draft_tokens=serving.draft_tokens,
    )


class Replica:
    """One engine.

    Args:
        name: As tables have it.
        job: Its own part of the job.
        program: Of one of its steps.
        blocks: Of its pool.
        backend: Of the op engine.

    Attributes:
        conditions, times: Of the last step; `times` are overwritten by the next.
    """

    conditions: Conditions
    times: StepTimes

    def __init__(self, name: str, job: Job, program: Program, blocks: int, backend: str) -> None:
        self.name, self.job, self.program = name, job, program
        watermark = blocks * job.serving.watermark_q16 >> 16
        self.scheduler = Scheduler(BlockPool(blocks, watermark), limits(job))
        self._engine = Engine(program, LoaderShape(0), job.seed, backend)
        self.dynamics = Dynamics(job, program)
        self._work, self._host = StepWork(job, program), HostTime(job, program)
        self._pauses = {name: row for row, name in enumerate(program.pauses)}
        marks = {op.path: number for number, op in enumerate(program.ops)}
        self._begin, self._scheduled, self._end = (marks[m] for m in (BEGIN, SCHEDULED, END))
        self._free_ns = np.zeros(program.ranks, np.int64)
        self._owes_jit = False
        self.steps = 0

    @property
    def open(self) -> int:
        """Requests that wait or run."""
        return self.scheduler.open

    def submit(self, request: Request) -> None:
        """Put a request into the queue."""
        request.engine = self.name
        self.scheduler.waiting.append(request)

    def step(self, now_ns: int) -> Step | None:
        """Plan and time a step that begins now; None if nothing can be done."""
        plan = self.scheduler.plan()
        if not plan:
            return None
        scheduler = self.scheduler
        level = Level(len(scheduler.running), len(scheduler.waiting), scheduler.pool.usage)
        jit_ns = self._jit_ns(plan)
        self._run(plan, level.running, now_ns, jit_ns)
        done = self.times.done
        begin, scheduled = int(done[self._begin][0]), int(done[self._scheduled][0])
        for part in plan.parts:
            if part.request.scheduled_ns < 0:
                part.request.scheduled_ns = scheduled
        end = int(self._free_ns.max())
        self.steps += 1
        return Step(self.steps - 1, plan, level, begin, scheduled - begin, jit_ns, end)

    def _run(self, plan: Plan, running: int, now_ns: int, jit_ns: int) -> None:
        """Let the ranks do the step, which they begin together."""
        conditions = _own(self.dynamics.conditions(self.steps))
        pauses = conditions.pause_ns
        pauses[self._pauses["idle"]] = np.maximum(now_ns - self._free_ns, 0)
        spent = self._host.scheduling_ns(plan, running, conditions, self.steps)
        pauses[self._pauses["schedule"]] = spent
        pauses[self._pauses["jit"]] = jit_ns
        self._work.fill(conditions, plan)
        self.times, self.conditions = self._engine.step(self.steps, conditions), conditions
        self.dynamics.observe(self.steps, self.times)
        self._free_ns = self.times.done[self._end].copy()

    def _jit_ns(self, plan: Plan) -> int:
        """How long code is compiled: when a request starts that needs some for the first time.

        There is one such request in every run of so many steps, at a place that is drawn.
        """
        compiler, step = self.job.compiler, self.steps
        if compiler.jit_every and compiler.jit_ns:
            run = noise.keys(self.job.seed, "jit", step // compiler.jit_every)
            place = int(noise.below(run, compiler.jit_every)[0])
            self._owes_jit |= step % compiler.jit_every == place
        if not self._owes_jit or not plan.started:
            return 0
        self._owes_jit = False
        draw = noise.key(self.job.seed, "jit length", self.steps) >> 48
        return compiler.jit_ns * (3 * ONE // 4 + draw // 2) >> 16

    def finish(self, step: Step) -> tuple[Step, list[Request], int]:
        """Take a step's tokens at its end.

        Returns:
            The step with what was accepted, requests whose answer is complete (their blocks are
            still theirs), and the number of tokens generated.
        """
        done = [request for request in step.plan.decoding if self._decoded(request)]
        accepted, tokens = 0, len(step.plan.decoding)
        for part in step.plan.parts:
            right, request = self._right(part), part.request
            self.scheduler.computed(request, request.computed + part.count + right)
            if not part.complete:
                continue
            accepted += right
            tokens += 1 + right
            request.known += 1 + right
            if request.first_token_ns < 0:
                request.first_token_ns = step.end_ns
            if request.generated >= request.answer_tokens:
                done.append(request)
        for request in done:
            request.finished_ns = step.end_ns
            self.scheduler.finish(request)
        return replace(step, accepted=accepted), done, tokens

    def _decoded(self, request: Request) -> bool:
        """Take a request's next token; returns whether its answer is complete."""
        known = request.known
        if known % BLOCK_TOKENS:
            request.computed = known
        else:
            self.scheduler.computed(request, known)
        request.known = known + 1
        return known + 1 - request.prompt_tokens >= request.answer_tokens

    def _right(self, part: Part) -> int:
        if not part.drafts:
            return 0
        return min(part.drafts, part.request.runs[part.request.generated])

    def settle(self, since: int, since_ns: int) -> None:
        """Let its devices be as warm as long after steps like those from number `since` on."""
        self.dynamics.settle(since, int(self._free_ns.max()) - since_ns)

    def warm(self, keys: Sequence[int]) -> None:
        """Fill the prefix cache as a server has it that has run for long."""
        if self.job.serving.prefix_cache:
            self.scheduler.pool.warm(keys)


def _own(conditions: Conditions) -> Conditions:
    """Copy what the engine writes into."""
    return replace(
        conditions,
        work_q16=conditions.work_q16.copy(),
        transfer_q16=conditions.transfer_q16.copy(),
        pause_ns=conditions.pause_ns.copy(),
    )
