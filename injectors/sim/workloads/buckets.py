"""Data parallelism as in DistributedDataParallel: gradients are averaged in buckets, in reverse."""

from __future__ import annotations

from collections.abc import Sequence

from injectors.sim.builder import Builder
from injectors.sim.job import ONE
from injectors.sim.launches import Exchange
from injectors.sim.program import Stream
from injectors.sim.tape import Layer, Parameter
from injectors.sim.workloads.sharing import Sharing

FIRST_BUCKET_BYTES = 2**20


def bucket_bytes(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Fill buckets with gradients of `sizes` bytes in the order in which they come.

    A bucket is closed once it holds its limit, which is 1 MiB for the first one.

    Returns:
        Bytes and number of gradients of each bucket.

    >>> bucket_bytes([2**20, 2**20, 2**21], limit=2**22)
    [(1048576, 1), (3145728, 2)]
    """
    found, held, count = [], 0, 0
    for size in sizes:
        held, count = held + size, count + 1
        if held >= (limit if found else min(limit, FIRST_BUCKET_BYTES)):
            found.append((held, count))
            held, count = 0, 0
    return [*found, (held, count)] if count else found


class Buckets(Sharing):
    """Averages the gradients of `layers` over the groups of a partition."""

    span = "DistributedDataParallel.forward"

    def __init__(self, builder: Builder, layers: Sequence[Layer], group: str = "data") -> None:
        super().__init__(builder)
        self._group = group
        sizes = [
            parameter.elements * builder.costs.element_bytes
            for layer in reversed(layers)
            for node in reversed(layer.nodes)
            for parameter in node.parameters
        ]
        limit = builder.job.framework.bucket_bytes
        self._buckets = bucket_bytes(sizes, limit) if builder.size(group) > 1 else []
        self._closed, self._held, self._part, self._shared = 0, 0, "", False

    def begin(self, micro_batch: str, last: bool) -> None:
        """Count gradients from none."""
        self._closed, self._held, self._part = 0, 0, micro_batch
        every = self.builder.job.framework.sync_every_microbatch
        self._shared = (last or every) and bool(self._buckets)

    def ready(self, parameters: Sequence[Parameter]) -> None:
        """Average a bucket as soon as all of its gradients are there."""
        for _ in parameters if self._shared else ():
            self._held += 1
            size, count = self._buckets[self._closed]
            if self._held == count:
                self._average(size)
                self._closed, self._held = self._closed + 1, 0

    def _average(self, size: int) -> None:
        builder, name = self.builder, f"bucket{self._closed}"
        make = builder.launches
        with builder.at(self._part, "ddp"):
            scale = make.elementwise(
                f"{name}.scale", size // make.costs.element_bytes, ("aten::div_",), "DivFunctor", 2
            )
            builder.launch(scale, host_q16=ONE // 2)
            wait = not builder.job.framework.overlap
            builder.exchange(
                Exchange(name, "all_reduce", size, self._group, Stream.DATA_PARALLEL, wait)
            )

    def finish(self) -> None:
        """Let computation wait for the last bucket."""
        if self._shared:
            with self.builder.at(self._part, "ddp"):
                self.builder.wait("wait", Stream.COMPUTE, Stream.DATA_PARALLEL)
