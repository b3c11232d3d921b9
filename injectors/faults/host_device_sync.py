"""A host that reads values back from the device in every step."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class HostDeviceSync(Fault):
    """Read one value of several gradients back before each optimizer step.

    Mechanism: every `item()` drains the device's queue, and the device idles until the host has
    issued new work. A CPU has no such queue: there the same code costs nothing that the label
    rule accepts, so the fault is refused by name where there is no CUDA device.
    Source: torchtune issue 522, fairchem pull request 2193.
    """

    cause: ClassVar[str] = "host_device_sync"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier", "language_model")
    needs: ClassVar[tuple[str, ...]] = ("cuda",)
    gradients: PositiveInt

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Read values back."""
        return run.knobs.turned(read_backs=float(self.gradients))

    def perturb(self, job: Job) -> None:
        """Read the values back."""
        job.framework.read_backs = self.gradients

    def witness(self) -> tuple[str, str]:
        """The host waits for its stream more often than in the reference."""
        return (
            """
            WITH now AS (SELECT count(*) FILTER (name = 'aten::_local_scalar_dense') AS reads,
                                count(*) FILTER (name IN ('cudaStreamSynchronize',
                                                          'cudaDeviceSynchronize')) AS waits
                         FROM trace_events),
                 then_ AS (SELECT count(*) FILTER (name = 'aten::_local_scalar_dense') AS reads,
                                  count(*) FILTER (name IN ('cudaStreamSynchronize',
                                                            'cudaDeviceSynchronize')) AS waits
                           FROM reference.trace_events)
            SELECT now.reads > 1.5 * then_.reads + 5 AND now.waits > 1.5 * then_.waits + 5
            FROM now, then_
            """,
            "the host reads values back and waits for its stream far more often",
        )
