"""A transformer trained by data parallelism: every rank holds all of it."""

from __future__ import annotations

from typing import ClassVar

from injectors.sim.workloads.transformer import Transformer


class DdpTransformer(Transformer):
    """DistributedDataParallel: gradients are averaged in buckets beside the backward."""

    title: ClassVar[str] = "Transformer language model, data-parallel training"
