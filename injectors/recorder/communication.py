"""How a rank talks to the others, and what it notes about each collective."""

# DDP reads the hook's annotations at run time, so they must be no strings here.
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.distributed import GradBucket

from injectors.recorder.clock import Clock, Mark
from injectors.workloads.base import Context


class Communication:
    """Averages gradients under DDP and notes each collective's times.

    The communication hook stays registered in trials and recordings alike, so that it is no
    difference between them. A collective is complete by the clock of the device: a future's
    callback runs when a CUDA collective has been queued, on a stream that waits for it, and so
    does the event that it marks there.
    """

    def __init__(self, context: Context, clock: Clock) -> None:
        self._context, self._clock = context, clock
        self._rank, self._bucket_mb = context.rank, float(context.settings["bucket_mb"])
        self._rows: list[dict[str, Any]] | None = None
        self._start_ns = 0
        self._seq = 0

    def start(self, start_ns: int) -> None:
        """Begin to keep rows, times counted from `start_ns` (monotonic)."""
        self._rows, self._start_ns, self._seq = [], start_ns, 0

    def stop(self) -> list[dict[str, Any]]:
        """Return the rows and stop keeping them; what they tell of must be done."""
        rows, self._rows = self._rows or [], None
        return [self._read(row) for row in rows]

    def data_parallel(self, model: nn.Module) -> nn.Module:
        """Return the model with its gradients averaged over all ranks."""
        wrapped = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=self._bucket_mb)
        wrapped.register_comm_hook(None, self.all_reduce)
        return wrapped

    def all_reduce(self, state: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Average one gradient bucket over all ranks."""
        tensor = bucket.buffer().div_(torch.distributed.get_world_size())
        row = self._begin("all_reduce", tensor)
        future = torch.distributed.all_reduce(tensor, async_op=True).get_future()

        def done(finished: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
            self._end(row)
            return finished.value()[0]

        averaged = future.then(done)
        if bucket.index() < int(self._context.knobs["waited_buckets"]):
            averaged.wait()
        return averaged

    @contextmanager
    def noted(self, op: str, tensor: torch.Tensor, group: str = "default") -> Iterator[None]:
        """Note a collective that runs from the block's begin to its end; `tensor` is its input."""
        row = self._begin(op, tensor, group)
        yield
        self._end(row)

    def wait(self, work: torch.distributed.Work) -> None:
        """Wait until a collective is done, asleep or (knob `busy_poll`) asking again and again."""
        if self._context.knobs["busy_poll"]:
            while not work.is_completed():
                os.sched_yield()
        work.wait()

    def sum(self, tensor: torch.Tensor) -> None:
        """Add up a tensor over all ranks, in place."""
        with self.noted("all_reduce", tensor):
            torch.distributed.all_reduce(tensor)

    def barrier(self) -> None:
        """Wait for all ranks."""
        with self.noted("barrier", torch.empty(0)):
            torch.distributed.barrier()

    def _begin(
        self, op: str, tensor: torch.Tensor, group: str = "default"
    ) -> dict[str, Any] | None:
        if self._rows is None:
            return None
        row: dict[str, Any] = {
            "rank": self._rank,
            "process_group": group,
            "seq": self._seq,
            "op": op,
            "bytes": tensor.numel() * tensor.element_size(),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "created_ns": time.monotonic_ns() - self._start_ns,
            "started_ns": None,
            "completed_ns": None,
            "state": "scheduled",
        }
        self._seq += 1
        self._rows.append(row)
        return row

    def _end(self, row: dict[str, Any] | None) -> None:
        if row is not None:
            row["completed_ns"] = self._clock.mark()
            row["state"] = "completed"

    def _read(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row with its marks turned into ns."""
        completed: Mark = row["completed_ns"]
        if completed is None:
            return row
        return {**row, "completed_ns": self._clock.read(completed) - self._start_ns}
