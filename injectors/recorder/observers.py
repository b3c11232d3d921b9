"""What a rank notes about itself while a window is recorded."""

# DDP reads the hook's annotations at run time, so they must be no strings here.
import gc
import sys
import time
from typing import Any

import torch
from torch.distributed import GradBucket


class CollectiveLog:
    """A DDP communication hook that averages gradients and notes each collective's times.

    It stays registered in trials and recordings alike, so that it is no difference between
    them.
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._rows: list[dict[str, Any]] | None = None
        self._start_ns = 0
        self._seq = 0

    def start(self, start_ns: int) -> None:
        """Begin to keep rows, times counted from `start_ns` (monotonic)."""
        self._rows, self._start_ns, self._seq = [], start_ns, 0

    def stop(self) -> list[dict[str, Any]]:
        """Return the rows and stop keeping them."""
        rows, self._rows = self._rows or [], None
        return rows

    def all_reduce(self, state: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Average one gradient bucket over all ranks."""
        tensor = bucket.buffer().div_(torch.distributed.get_world_size())
        row = self._begin(tensor)
        future = torch.distributed.all_reduce(tensor, async_op=True).get_future()

        def done(finished: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
            if row is not None:
                row["completed_ns"] = time.monotonic_ns() - self._start_ns
                row["state"] = "completed"
            return finished.value()[0]

        return future.then(done)

    def _begin(self, tensor: torch.Tensor) -> dict[str, Any] | None:
        if self._rows is None:
            return None
        row: dict[str, Any] = {
            "rank": self._rank,
            "process_group": "default",
            "seq": self._seq,
            "op": "all_reduce",
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


class RuntimeLog:
    """Garbage collections and recompilations, as the runtime itself reports them."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._rows: list[dict[str, Any]] | None = None
        self._start_ns = self._gc_began_ns = self._graphs = 0

    def start(self, start_ns: int) -> None:
        """Begin to keep rows, times counted from `start_ns` (monotonic)."""
        self._rows, self._start_ns, self._graphs = [], start_ns, compiled_graphs()
        gc.callbacks.append(self._collected)

    def stop(self) -> list[dict[str, Any]]:
        """Return the rows and stop keeping them."""
        gc.callbacks.remove(self._collected)
        rows, self._rows = self._rows or [], None
        return rows

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        now = time.monotonic_ns()
        if phase == "start":
            self._gc_began_ns = now
        elif self._gc_began_ns:
            self._add("gc", self._gc_began_ns, now - self._gc_began_ns, info["generation"])

    def check_recompilation(self) -> None:
        """Note graphs compiled since the last call."""
        graphs = compiled_graphs()
        if graphs != self._graphs:
            self._add("recompile", time.monotonic_ns(), None, graphs - self._graphs)
            self._graphs = graphs

    def _add(self, event: str, at_ns: int, duration_ns: int | None, value: float) -> None:
        if self._rows is not None:
            self._rows.append(
                {
                    "rank": self._rank,
                    "time_ns": at_ns - self._start_ns,
                    "event": event,
                    "duration_ns": duration_ns,
                    "value": float(value),
                    "detail": "",
                }
            )


def compiled_graphs() -> int:
    """Return how many graphs dynamo has compiled in this process."""
    utils = sys.modules.get("torch._dynamo.utils")
    return 0 if utils is None else int(utils.counters["stats"]["unique_graphs"])
