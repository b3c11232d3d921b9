"""Devices that look slow, idle or throttled and are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat

from injectors.decoys.simulated import SimulatedDecoy
from injectors.sim.job import ONE
from injectors.sim.names import TRAINING, TRANSFORMERS

if TYPE_CHECKING:
    from injectors.sim.job import Job


class SpinningCollectiveUtilization(SimulatedDecoy):
    """All devices but one compute faster than before, and wait for that one in collectives.

    A waiting communication kernel counts as use, so they report 100 % while they draw less power.
    """

    name: ClassVar[str] = "spinning_collective_utilization"
    looks_like: ClassVar[tuple[str, ...]] = (
        "kernel_regression",
        "thermal_throttle",
        "idle_device_misconfig",
    )
    simulated: ClassVar[tuple[str, ...] | None] = TRANSFORMERS
    least_ranks: ClassVar[int] = 2
    rank: NonNegativeInt = 0
    faster: float = Field(default=1.1, gt=1, lt=1.5, description="speed of the others, over before")

    def perturb(self, job: Job) -> None:
        """Give the others better devices."""
        others = (rank for rank in range(job.places.ranks) if rank != self.rank)
        job.gpus.silicon_q16.update(dict.fromkeys(others, round(self.faster * ONE)))


class LowPowerWhileWaiting(SimulatedDecoy):
    """A device draws little power since it waits, or all stand at their limit as at any full load.

    With `faster` one rank's device is done before the others; with `limit_w` the boards of all are
    allowed less than before, and what they draw is hardly more.
    """

    name: ClassVar[str] = "low_power_while_waiting"
    looks_like: ClassVar[tuple[str, ...]] = ("power_cap", "thermal_throttle")
    simulated: ClassVar[tuple[str, ...] | None] = TRANSFORMERS
    least_ranks: ClassVar[int] = 2
    rank: NonNegativeInt = 0
    faster: float = Field(default=1.0, ge=1, lt=1.5)
    limit_w: PositiveFloat | None = None

    def perturb(self, job: Job) -> None:
        """Make one device faster, or lower the limit of all."""
        if self.faster > 1:
            job.gpus.silicon_q16[self.rank] = round(self.faster * ONE)
        if self.limit_w is not None:
            ranks = range(job.places.ranks)
            job.gpus.power_limit_w.update(dict.fromkeys(ranks, round(self.limit_w)))


class IdlePcieGeneration(SimulatedDecoy):
    """One rank's device has nothing to do before the first step, and its link saves power."""

    name: ClassVar[str] = "idle_pcie_generation"
    looks_like: ClassVar[tuple[str, ...]] = ("pcie_downgrade",)
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    rank: NonNegativeInt = 0
    late_s: PositiveFloat = 1.0

    def perturb(self, job: Job) -> None:
        """Let the rank begin late."""
        job.host.first_ns[self.rank] = round(self.late_s * 10**9)


class BlindInstrument(SimulatedDecoy):
    """A reading of one rank's device stays at zero, whatever the device does."""

    name: ClassVar[str] = "blind_instrument"
    looks_like: ClassVar[tuple[str, ...]] = (
        "comm_overlap_lost",
        "idle_device_misconfig",
        "kernel_launch_bound",
    )
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    rank: NonNegativeInt = 0
    readings: tuple[
        Literal[
            "utilization_percent",
            "memory_utilization_percent",
            "nvlink_tx_bytes",
            "nvlink_rx_bytes",
            "pcie_tx_bytes_per_s",
            "pcie_rx_bytes_per_s",
            "processes",
        ],
        ...,
    ] = ("utilization_percent", "memory_utilization_percent")

    def perturb(self, job: Job) -> None:
        """Blind the instrument."""
        job.gpus.stuck[self.rank] = self.readings


class UtilizationFallsWithSpeedup(SimulatedDecoy):
    """Kernels of one family are faster than before, in a job that waits for its host anyway."""

    name: ClassVar[str] = "utilization_falls_with_speedup"
    looks_like: ClassVar[tuple[str, ...]] = ("dataloader_cpu_bound", "kernel_launch_bound")
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    family: Literal["gemm", "attention", "norm", "elementwise", "convolution", "embedding"] = "gemm"
    faster: float = Field(default=1.3, gt=1, lt=3)

    def perturb(self, job: Job) -> None:
        """Speed the family up."""
        job.framework.efficiency_q16[self.family] = round(self.faster * ONE)
