"""Waits that move from one phase of a step to another."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import ClassVar

from injectors.faults.base import Decoy, Run


class CostMovesToNextSync(Decoy):
    """The loop asks for its batch where it first needs it: in the forward pass.

    The wait for data leaves `data_wait_ns` for `forward_ns`, and the step takes as long as
    before. It shows most in a job that does wait for data.
    """

    name: ClassVar[str] = "cost_moves_to_next_sync"
    looks_like: ClassVar[tuple[str, ...]] = ("host_device_sync", "unfused_kernels")
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier",)

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Fetch late."""
        return run.knobs.turned(late_fetch=1.0)
