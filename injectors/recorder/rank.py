"""The loop of one rank: runs trials and recorded windows on the recorder's command."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import signal
import sys
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from injectors.recorder import nccl_log
from injectors.workloads.base import Context, Program, Step, Workload

if TYPE_CHECKING:
    from injectors.recorder.clock import Mark

PR_SET_PDEATHSIG = 1
LOG_EVERY = 10


@dataclass(frozen=True)
class RankPlan:
    """What a rank needs to know beside its context; `core` None leaves it unpinned."""

    workload: Workload
    backend: str
    store: Path
    core: int | None


def serve(plan: RankPlan, context: Context, orders: Connection) -> None:
    """Build the job and obey orders until told to stop; runs in a forked process."""
    die_with_parent()
    if plan.core is not None:
        os.sched_setaffinity(0, {plan.core})
    rank = Rank(plan, context)
    orders.send("ready")
    while True:
        order = orders.recv()
        if order["do"] == "stop":
            break
        orders.send(getattr(rank, order.pop("do"))(**order))
    rank.close()
    orders.send("stopped")


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends, however that happens."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Rank:
    """One rank's program with its process group."""

    def __init__(self, plan: RankPlan, context: Context) -> None:
        import torch

        from injectors.recorder.chores import Chores
        from injectors.recorder.clock import clock_of
        from injectors.recorder.communication import Communication
        from injectors.recorder.observers import RuntimeLog

        torch.set_num_threads(int(context.settings["threads"]))
        if context.device.type == "cuda":
            torch.cuda.set_device(context.device)
        self._context, self._clock = context, clock_of(context.device)
        self._distributed = context.world_size > 1
        if plan.backend == "nccl":
            os.environ.update(nccl_log.variables(context.folder))
        if self._distributed:
            torch.distributed.init_process_group(
                plan.backend,
                init_method=f"file://{plan.store}",
                rank=context.rank,
                world_size=context.world_size,
            )
        self._program: Program = plan.workload.build(context)
        self._program.clock = self._clock
        self._communication = Communication(context, self._clock)
        if self._distributed:
            self._program.connect(self._communication)
        self._runtime = RuntimeLog(context.rank)
        self._chores = Chores(context, self._program)
        self._losses: list[float] = []

    def _step(self, number: int) -> tuple[Step, dict[str, int], Mark]:
        """Do one step with the chores around it; returns it, the chores' columns and its end."""
        self._chores.before(number)
        step = self._program.step()
        done = self._chores.after(number, step)
        return step, done, self._clock.mark()

    def _row(
        self, number: int, step: Step, done: dict[str, int], end: Mark, start_ns: int
    ) -> dict[str, Any]:
        """Return a step's row of `steps`, times counted from `start_ns`."""
        began = self._clock.read(step.start_ns)
        return {
            "rank": self._context.rank,
            "step": number,
            "span": 1,
            "start_ns": began - start_ns,
            "duration_ns": self._clock.read(end) - began,
            **step.phases,
            **done,
            "tokens": step.tokens,
        }

    def _wait_for_all(self) -> None:
        import torch

        if self._context.device.type == "cuda":
            torch.cuda.synchronize(self._context.device)
        if self._distributed:
            torch.distributed.barrier()

    def trials(self, settle: int, steps: int, count: int) -> list[float]:
        """Run `settle` steps unmeasured, then `count` trials of `steps` steps each.

        Returns each trial's mean wall seconds per step.
        """
        for step in range(settle):
            self._step(step)
        means = []
        for _ in range(count):
            self._wait_for_all()
            begin = time.monotonic()
            for step in range(steps):
                self._step(step)
            self._wait_for_all()
            means.append((time.monotonic() - begin) / steps)
        return means

    def window(
        self, settle: int, steps: int, profiled: int, start_ns: int, stacks: bool
    ) -> dict[str, Any]:
        """Record `steps` steps, the last `profiled` of them with the profiler.

        Returns rows of the tables, times in ns after `start_ns` (monotonic), the raw trace's
        path, and the unix time of `start_ns`.
        """
        import torch

        for step in range(settle):
            self._step(step)
        if self._context.knobs["cold_start"]:
            self._program.cold_start()
        self._program.tables(start_ns, 0)
        self._wait_for_all()
        self._clock.anchor()
        self._losses.clear()
        self._communication.start(start_ns)
        self._runtime.start(start_ns)
        trace = self._context.folder / f"trace-{self._context.rank}.json"
        unix_ns = time.time_ns() - time.monotonic_ns() + start_ns
        steps_done: list[tuple[Step, dict[str, int], Mark]] = []
        with torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=steps - profiled - 1, warmup=1, active=profiled),
            on_trace_ready=lambda profile: profile.export_chrome_trace(str(trace)),
            with_stack=stacks,
        ) as profile:
            for step in range(steps):
                steps_done.append(self._recorded_step(step))
                profile.step()
        self._wait_for_all()
        rows = [self._row(number, *done, start_ns) for number, done in enumerate(steps_done)]
        tables = {
            "steps": rows,
            "collectives": self._communication.stop(),
            "runtime": self._runtime.stop(),
            "logs": self._logs(rows),
        }
        for name, own in self._program.tables(start_ns, steps).items():
            tables.setdefault(name, []).extend(own)
        return {"tables": tables, "trace": str(trace), "unix_ns": unix_ns}

    def _recorded_step(self, number: int) -> tuple[Step, dict[str, int], Mark]:
        done = self._step(number)
        self._runtime.check()
        if number % LOG_EVERY == LOG_EVERY - 1:
            loss = done[0].loss
            self._losses.append(float("nan") if loss is None else float(loss.detach()))
        return replace(done[0], loss=None), *done[1:]

    def _logs(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What the job prints: rank 0's progress every LOG_EVERY steps, NCCL's words of its start.

        What was printed before the window stands at its begin.
        """
        if self._context.rank:
            return []
        said = {"rank": 0, "time_ns": rows[0]["start_ns"], "level": "INFO"}
        lines = [{**said, "message": line} for line in nccl_log.read(self._context.folder)]
        for loss, end in zip(self._losses, range(LOG_EVERY, len(rows) + 1, LOG_EVERY), strict=True):
            part = rows[end - LOG_EVERY : end]
            mean_ms = sum(row["duration_ns"] for row in part) / len(part) / 1e6
            last = part[-1]
            found = "" if math.isnan(loss) else f"loss {loss:.3f}, "
            lines.append(
                {
                    "rank": 0,
                    "time_ns": last["start_ns"] + last["duration_ns"],
                    "level": "INFO",
                    "message": f"step {end}: {found}{mean_ms:.1f} ms/step",
                }
            )
        return lines

    def children(self) -> list[int]:
        """Return the process ids of the rank's helpers, oldest first."""
        path = Path(f"/proc/self/task/{os.getpid()}/children")
        return [int(pid) for pid in path.read_text().split()]

    def close(self) -> None:
        """End helpers and leave the process group."""
        import torch

        self._program.close()
        if self._distributed:
            torch.distributed.destroy_process_group()


def run_forked(plan: RankPlan, context: Context, orders: Connection) -> None:
    """Body of the forked child: never returns into the parent's stack."""
    status = 1
    try:
        gc.collect()
        serve(plan, context, orders)
        status = 0
    except (EOFError, BrokenPipeError):
        pass
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
