"""The loop of one rank: runs trials and recorded windows on the recorder's command."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from injectors.workloads.base import Context, Program, Workload

PR_SET_PDEATHSIG = 1
LOG_EVERY = 10


@dataclass(frozen=True)
class RankPlan:
    """What a rank needs to know beside its context."""

    workload: Workload
    backend: str
    store: Path
    core: int | None
    bucket_mb: float


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

        from injectors.recorder.observers import CollectiveLog, RuntimeLog

        torch.set_num_threads(1)
        self._context = context
        self._distributed = context.world_size > 1
        if self._distributed:
            torch.distributed.init_process_group(
                plan.backend,
                init_method=f"file://{plan.store}",
                rank=context.rank,
                world_size=context.world_size,
            )
        self._program: Program = plan.workload.build(context)
        self._collectives = CollectiveLog(context.rank)
        self._runtime = RuntimeLog(context.rank)
        self._losses: list[float] = []
        model = self._program.model
        if self._distributed:
            model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=plan.bucket_mb)
            model.register_comm_hook(None, self._collectives.all_reduce)
            self._program.model = model

    def _step(self) -> tuple[list[int], Any]:
        """Run one training step; returns its phase boundaries in monotonic ns, and the loss."""
        program, clock = self._program, time.monotonic_ns
        marks = [clock()]
        batch = program.next_batch()
        marks.append(clock())
        program.optimizer.zero_grad(set_to_none=True)
        loss = program.forward(batch)
        marks.append(clock())
        loss.backward()
        marks.append(clock())
        program.optimizer.step()
        marks.append(clock())
        return marks, loss

    def _checkpoint(self, step: int) -> None:
        import torch

        every = int(self._context.knobs["checkpoint_every"])
        if every and step % every == every - 1 and self._context.rank == 0:
            target = self._context.folder / "checkpoint.pt"
            torch.save(self._program.model.state_dict(), target)

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
            self._step()
            self._checkpoint(step)
        means = []
        for _ in range(count):
            self._wait_for_all()
            begin = time.monotonic()
            for step in range(steps):
                self._step()
                self._checkpoint(step)
            self._wait_for_all()
            means.append((time.monotonic() - begin) / steps)
        return means

    def window(self, settle: int, steps: int, profiled: int, start_ns: int) -> dict[str, Any]:
        """Record `steps` steps, the last `profiled` of them with the profiler.

        Returns rows of the tables, times in ns after `start_ns` (monotonic), the raw trace's
        path, and the unix time of `start_ns`.
        """
        import torch

        for step in range(settle):
            self._step()
            self._checkpoint(step)
        self._program.loader_rows()
        if self._context.knobs["cold_start"]:
            self._program.cold_start()
        self._wait_for_all()
        self._losses.clear()
        self._collectives.start(start_ns)
        self._runtime.start(start_ns)
        trace = self._context.folder / f"trace-{self._context.rank}.json"
        unix_ns = time.time_ns() - time.monotonic_ns() + start_ns
        rows: list[dict[str, Any]] = []
        with torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=steps - profiled - 1, warmup=1, active=profiled),
            on_trace_ready=lambda profile: profile.export_chrome_trace(str(trace)),
        ) as profile:
            for step in range(steps):
                rows.append(self._recorded_step(step, start_ns))
                profile.step()
        self._wait_for_all()
        return {
            "steps": rows,
            "collectives": self._collectives.stop(),
            "runtime": self._runtime.stop(),
            "logs": self._logs(rows),
            "loader": self._loader_rows(start_ns, steps),
            "trace": str(trace),
            "unix_ns": unix_ns,
        }

    def _recorded_step(self, step: int, start_ns: int) -> dict[str, Any]:
        marks, loss = self._step()
        self._checkpoint(step)
        end = time.monotonic_ns()
        self._runtime.check_recompilation()
        if step % LOG_EVERY == LOG_EVERY - 1:
            self._losses.append(float(loss.detach()))
        waits = [later - earlier for earlier, later in pairwise(marks)]
        return {
            "rank": self._context.rank,
            "step": step,
            "span": 1,
            "start_ns": marks[0] - start_ns,
            "duration_ns": end - marks[0],
            "data_wait_ns": waits[0],
            "forward_ns": waits[1],
            "backward_ns": waits[2],
            "optimizer_ns": waits[3],
            "checkpoint_ns": end - marks[4] if self._context.knobs["checkpoint_every"] else 0,
            "tokens": self._program.samples_per_step,
        }

    def _logs(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What the job prints: progress of rank 0 every LOG_EVERY steps."""
        if self._context.rank:
            return []
        lines = []
        for loss, end in zip(self._losses, range(LOG_EVERY, len(rows) + 1, LOG_EVERY), strict=True):
            part = rows[end - LOG_EVERY : end]
            mean_ms = sum(row["duration_ns"] for row in part) / len(part) / 1e6
            last = part[-1]
            lines.append(
                {
                    "rank": 0,
                    "time_ns": last["start_ns"] + last["duration_ns"],
                    "level": "INFO",
                    "message": f"step {end}: loss {loss:.3f}, {mean_ms:.1f} ms/step",
                }
            )
        return lines

    def _loader_rows(self, start_ns: int, steps: int) -> list[dict[str, Any]]:
        rows = self._program.loader_rows()[:steps]
        return [
            {**row, "rank": self._context.rank, "start_ns": row["start_ns"] - start_ns}
            for row in rows
        ]

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
