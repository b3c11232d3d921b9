"""Programs with parameters that each rank has for itself, beside those that all share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from injectors.workloads.base import Context, TrainingProgram

if TYPE_CHECKING:
    from torch import nn

    from injectors.recorder.communication import Communication


class ShardedProgram(TrainingProgram):
    """Data parallel but for shards, whose rows the ranks exchange.

    Args:
        group_name: Name of the shards' process group.
        event: Name in `runtime` for the load of a shard.
    """

    def __init__(self, context: Context, group_name: str, event: str) -> None:
        from injectors.workloads.exchange import Exchange, Loads

        super().__init__(context)
        self._exchange = Exchange(group_name)
        self._loads = Loads(context.rank, event)

    def keep_apart(self, shards: Iterable[nn.Parameter]) -> None:
        """Leave the shards out of gradient averaging; they get gradients of all ranks' losses."""
        own = {id(parameter) for parameter in shards}
        ranks = self._context.world_size
        # Constants need no broadcast either.
        ignored = [name for name, _ in self.model.named_buffers()]
        for name, parameter in self.model.named_parameters():
            if id(parameter) in own:
                parameter.register_hook(lambda gradient: gradient / ranks)
                ignored.append(name)
        # How DDP is told; torch offers no public way.
        self.model._ddp_params_and_buffers_to_ignore = ignored

    def connect(self, communication: Communication) -> None:
        """Average the shared gradients, and join the shards by a group of their own."""
        self._exchange.join(communication)
        super().connect(communication)

    def tables(self, start_ns: int, steps: int) -> dict[str, list[dict[str, Any]]]:
        """Return the loads of this rank's shards."""
        return {"runtime": self._loads.take(start_ns)}
