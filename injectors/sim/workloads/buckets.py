"""Data parallelism as in DistributedDataParallel: gradients are averaged in buckets, in reverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    found: list[tuple[int, int]] = []
    held, count = 0, 0
    for size in sizes:
        held, count = held + size, count + 1
        if held >= (limit if found else min(limit, FIRST_BUCKET_BYTES)):
            found.append((held, count))
            held, count = 0, 0
    return [*found, (held, count)] if count else found


@dataclass
class _Filling:
    """The buckets of one partition's gradients, and how far they are filled in a micro-batch."""

    buckets: list[tuple[int, int]]
    closed: int = 0
    held: int = field(default=0)


class Buckets(Sharing):
    """Averages the gradients of `layers` over the ranks that hold the same parameters.

    `scope` are first parts of its paths, for jobs whose ranks do different things.
    """

    span = "DistributedDataParallel.forward"

    def __init__(
        self, builder: Builder, layers: Sequence[Layer], scope: tuple[str, ...] = ()
    ) -> None:
        super().__init__(builder)
        self._scope, self._part, self._shared, self._last = scope, "", False, False
        sizes: dict[str, list[int]] = {}
        for layer in reversed(layers):
            for node in reversed(layer.nodes):
                for parameter in node.parameters:
                    size = parameter.elements * builder.costs.element_bytes
                    sizes.setdefault(parameter.group, []).append(size)
        limit = builder.job.framework.bucket_bytes
        self._filling = {
            group: _Filling(bucket_bytes(found, limit))
            for group, found in sizes.items()
            if builder.size(group) > 1
        }

    def begin(self, micro_batch: str, last: bool) -> None:
        """Count gradients from none."""
        self._part, self._last = micro_batch, last
        self._shared = last or self.builder.job.framework.sync_every_microbatch
        for filling in self._filling.values():
            filling.closed = filling.held = 0

    def ready(self, parameters: Sequence[Parameter]) -> None:
        """Average a bucket as soon as all of its gradients are there."""
        for parameter in parameters if self._shared else ():
            filling = self._filling.get(parameter.group)
            if filling is None:
                continue
            filling.held += 1
            size, count = filling.buckets[filling.closed]
            if filling.held == count:
                self._average(parameter.group, filling.closed, size)
                filling.closed, filling.held = filling.closed + 1, 0

    def _average(self, group: str, number: int, size: int) -> None:
        builder, name = self.builder, f"bucket{number}"
        make = builder.launches
        with builder.at(*self._scope, self._part, "ddp" if group == "data" else group):
            elements = size // make.costs.element_bytes
            scale = make.elementwise(f"{name}.scale", elements, ("aten::div_",), "DivFunctor", 2)
            builder.launch(scale, host_q16=ONE // 2)
            wait = not builder.job.framework.overlap
            builder.exchange(Exchange(name, "all_reduce", size, group, Stream.DATA_PARALLEL, wait))

    def finish(self) -> None:
        """Let computation wait for the last bucket."""
        if not (self._last and self.builder.job.framework.late_wait):
            self._wait()

    def settle(self) -> None:
        """The same where the optimizer needs it."""
        if self.builder.job.framework.late_wait:
            self._wait()

    def _wait(self) -> None:
        if self._shared and self._filling:
            with self.builder.at(*self._scope, self._part, "ddp"):
                self.builder.wait("wait", Stream.COMPUTE, Stream.DATA_PARALLEL)
