"""The stages of a pipeline: which layers each holds, and how neighbours talk."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import torch
from torch import distributed, nn

from injectors.workloads.transformer import Transformer

if TYPE_CHECKING:
    from injectors.recorder.communication import Communication


class Stage(nn.Module):
    """The part of a transformer that one rank holds; the first embeds, the last makes logits."""

    def __init__(self, whole: Transformer, layers: range, first: bool, last: bool) -> None:
        super().__init__()
        self.tokens = whole.tokens if first else None
        self.positions = whole.positions if first else None
        self.blocks = nn.ModuleList(whole.blocks[number] for number in layers)
        self.norm = whole.norm if last else None
        self.head = whole.head if last else None
        self.register_buffer("mask", whole.mask, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens or (batch, sequence, d_model) to the latter or logits."""
        if self.tokens is not None and self.positions is not None:
            x = self.tokens(x) + self.positions.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x, self.mask)
        if self.norm is not None and self.head is not None:
            x = self.head(self.norm(x))
        return x


class Neighbours:
    """Sends to and receives from the stages before and after; all messages have one shape."""

    def __init__(self, rank: int, stages: int, shape: tuple[int, ...], device: torch.device):
        self.previous = rank - 1 if rank else None
        self.next = rank + 1 if rank + 1 < stages else None
        self._shape, self._device = shape, device
        self._communication: Communication | None = None

    def join(self, communication: Communication) -> None:
        """Meet all other stages."""
        self._communication = communication
        distributed.barrier()

    def swap(
        self, peer: int | None, tensor: torch.Tensor | None, receive: bool
    ) -> torch.Tensor | None:
        """Send a tensor (or none) and receive one at the same time; nothing without a peer.

        What is to be sent and received is posted together, since each side may wait for the
        other's receive.
        """
        if peer is None or self._communication is None:
            return None
        arrived = torch.empty(self._shape, device=self._device) if receive else None
        posted = []
        with ExitStack() as noted:
            for way, op, payload in (
                ("send", distributed.isend, None if tensor is None else tensor.detach()),
                ("recv", distributed.irecv, arrived),
            ):
                if payload is not None:
                    noted.enter_context(self._communication.noted(way, payload, "pipeline"))
                    posted.append(distributed.P2POp(op, payload.contiguous(), peer))
            for work in distributed.batch_isend_irecv(posted) if posted else []:
                work.wait()
        return arrived
