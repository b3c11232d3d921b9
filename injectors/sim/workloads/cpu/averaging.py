"""DistributedDataParallel over gloo: buckets of gradients, averaged beside the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from injectors.sim.builder import Builder
from injectors.sim.launches import Exchange
from injectors.sim.program import Stream
from injectors.sim.tape import Layer, Parameter
from injectors.sim.workloads.buckets import bucket_bytes
from injectors.sim.workloads.cpu.operators import ELEMENT_BYTES, Precision
from injectors.sim.workloads.sharing import Sharing

SHARD = "shard"  # group of parameters that each rank has for itself


class GlooBuckets(Sharing):
    """Averages the gradients of `layers`.

    Args:
        builder: Where ops are appended.
        layers: Of the model.
        precision: Of the gradients.
        waited: Buckets, from the first, that are waited for as soon as they are sent.
        averaged: Whether gradients are averaged after a micro-batch of this number.
    """

    span = "DistributedDataParallel.forward"

    def __init__(
        self,
        builder: Builder,
        layers: Sequence[Layer],
        precision: Precision,
        waited: int,
        averaged: Callable[[int], bool],
    ) -> None:
        super().__init__(builder)
        size = ELEMENT_BYTES[precision]
        sizes = [
            parameter.elements * size
            for layer in reversed(layers)
            for node in reversed(layer.nodes)
            for parameter in node.parameters
            if parameter.group != SHARD
        ]
        limit = builder.job.framework.bucket_bytes
        alone = builder.job.places.ranks < 2
        self._buckets = [] if alone else bucket_bytes(sizes, limit)
        self._waited, self._averaged = waited, averaged
        self._closed = self._held = self._number = 0
        self._shared = False

    def begin(self, micro_batch: str, last: bool) -> None:
        """Count gradients from none."""
        self._closed = self._held = 0
        self._shared = bool(self._buckets) and (last or self._averaged(self._number))
        self._number += 1

    def ready(self, parameters: Sequence[Parameter]) -> None:
        """Average a bucket as soon as all of its gradients are there."""
        for parameter in parameters if self._shared else ():
            if parameter.group == SHARD:
                continue
            self._held += 1
            size, count = self._buckets[self._closed]
            if self._held == count:
                self._send(size)
                self._closed, self._held = self._closed + 1, 0

    def _send(self, size: int) -> None:
        name, stream = f"bucket{self._closed}", Stream.DATA_PARALLEL
        self.builder.exchange(Exchange(name, "all_reduce", size, "data", stream, wait=False))
        if self._closed < self._waited:
            self.builder.sync(f"{name}.wait", stream, runtime=None)

    def finish(self) -> None:
        """Wait for the last bucket."""
        if self._shared:
            self.builder.sync("buckets.wait", Stream.DATA_PARALLEL, runtime=None)
