"""Rows that ranks send to each other, gradients included, and a note of how many each got."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from injectors.recorder.communication import Communication


class Exchange:
    """All-to-all over a process group of its own; a rank that is alone keeps its rows."""

    def __init__(self, group_name: str) -> None:
        self._name = group_name
        self._communication: Communication | None = None
        self._group: Any = None

    def join(self, communication: Communication) -> None:
        """Make the process group; every rank calls this once, in the same order."""
        self._group = torch.distributed.new_group()
        self._communication = communication

    def counts(self, sent: torch.Tensor) -> torch.Tensor:
        """Tell every rank how many rows it gets, shape (ranks, k); returns how many each sends."""
        return self.swap(sent, [1] * len(sent), [1] * len(sent))

    def rows(self, x: torch.Tensor, sent: list[int], received: list[int]) -> torch.Tensor:
        """Send the first sent[0] rows to rank 0 and so on; gradients go the same way back.

        Returns the rows that this rank is sent, received[0] from rank 0 first.
        """
        moved: torch.Tensor = _AllToAll.apply(x, self, sent, received)
        return moved

    def swap(self, x: torch.Tensor, sent: list[int], received: list[int]) -> torch.Tensor:
        """Do what `rows` does, without gradients."""
        if self._communication is None:
            return x.clone()
        arrived = x.new_empty((sum(received), *x.shape[1:]))
        with self._communication.noted("all_to_all", x, self._name):
            work = torch.distributed.all_to_all_single(
                arrived, x.contiguous(), received, sent, group=self._group, async_op=True
            )
            self._communication.wait(work)
        return arrived


class _AllToAll(torch.autograd.Function):
    """The exchange as an operator whose gradient is the exchange backwards."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, exchange: Exchange, sent: list[int], received: list[int]
    ) -> torch.Tensor:
        ctx.exchange, ctx.sent, ctx.received = exchange, sent, received
        return exchange.swap(x, sent, received)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return ctx.exchange.swap(gradients[0], ctx.received, ctx.sent), None, None, None


class Loads:
    """How much work a rank was given, noted step by step as rows of `runtime`."""

    def __init__(self, rank: int, event: str) -> None:
        self._rank, self._event = rank, event
        self._rows: list[dict[str, Any]] = []

    def note(self, value: float, detail: str = "") -> None:
        """Note a load of this moment."""
        row = {"time_ns": time.monotonic_ns(), "value": float(value), "detail": detail}
        self._rows.append({"rank": self._rank, "event": self._event, "duration_ns": None, **row})

    def take(self, start_ns: int) -> list[dict[str, Any]]:
        """Return and forget the rows, times counted from `start_ns` (monotonic)."""
        rows, self._rows = self._rows, []
        return [{**row, "time_ns": row["time_ns"] - start_ns} for row in rows]
