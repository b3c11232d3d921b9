"""What happens once, or at the wrong moment to be taken for a cause."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, PositiveFloat, PositiveInt

from injectors.decoys.simulated import SimulatedDecoy
from injectors.faults.base import Decoy, Run
from injectors.sim.fetches import read_time_ns
from injectors.sim.job import ONE, Flows
from injectors.sim.names import LOADER_BOUND, TRAINING
from injectors.sim.releases import upgraded

if TYPE_CHECKING:
    from injectors.sim.job import Job


class SlowFirstStep(Decoy):
    """The recording begins with the job's first step, which compiles or starts workers.

    A cost paid once is no slower job: its trials, like all, are of the steps after it. A simulated
    first step compiles for `first_s`.
    """

    name: ClassVar[str] = "slow_first_step"
    looks_like: ClassVar[tuple[str, ...]] = ("recompilation_churn", "storage_fetch_stall")
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    first_s: PositiveFloat = 5.0

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Begin the recorded window with a first step."""
        return run.knobs.turned(cold_start=1.0)

    def perturb(self, job: Job) -> None:
        """Compile in the first step."""
        job.compiler.first_ns = round(self.first_s * 10**9)


class SimultaneousGlobalDrop(SimulatedDecoy):
    """Other jobs' traffic slows all ranks down for a moment, once or twice in a recording.

    The delay of one link is everybody's for a few steps; over the whole it is nothing.
    """

    name: ClassVar[str] = "simultaneous_global_drop"
    looks_like: ClassVar[tuple[str, ...]] = ("network_congestion", "power_cap", "kernel_regression")
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    least_hosts: ClassVar[int] = 2
    flows: PositiveInt = 1
    on_ms: PositiveFloat
    every_ms: PositiveFloat

    def perturb(self, job: Job) -> None:
        """Let the flows come for a moment."""
        on_ns, period_ns = round(self.on_ms * 10**6), round(self.every_ms * 10**6)
        job.network.background = Flows(self.flows, on_ns, period_ns)


class ObserverEffect(SimulatedDecoy):
    """The profiler of the last steps takes time of the host, which the job without it has."""

    name: ClassVar[str] = "observer_effect"
    looks_like: ClassVar[tuple[str, ...]] = (
        "debug_env_left_on",
        "monitoring_interference",
        "kernel_launch_bound",
    )
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    host_time: float = Field(default=2.0, gt=1, description="of profiled steps, over other steps")

    def perturb(self, job: Job) -> None:
        """Let host work of profiled steps take longer."""
        job.host.profiled_q16 = round(self.host_time * ONE)


class CoincidentVersionChange(SimulatedDecoy):
    """The job runs other versions than its reference did, which are as fast."""

    name: ClassVar[str] = "coincident_version_change"
    looks_like: ClassVar[tuple[str, ...]] = ("kernel_regression", "nccl_tuning_regression")
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    least_ranks: ClassVar[int] = 2

    def perturb(self, job: Job) -> None:
        """Upgrade."""
        job.versions = upgraded(job.versions)


class SteadyUndersupplyRhythm(SimulatedDecoy):
    """Workers that began together deliver together: the loop pauses once in each round of them.

    A batch takes its worker `fetch_ms`, a hair longer than the others need to use theirs up.
    """

    name: ClassVar[str] = "steady_undersupply_rhythm"
    looks_like: ClassVar[tuple[str, ...]] = (
        "python_gc_pause",
        "process_suspended",
        "sync_checkpoint",
    )
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND
    fetch_ms: PositiveFloat

    def perturb(self, job: Job) -> None:
        """Let decoding take what reading leaves of that time."""
        left_ns = round(self.fetch_ms * 10**6) - read_time_ns(job)
        job.loader.decode_ns = max(job.loader.decode_ns, left_ns)
