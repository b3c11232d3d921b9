"""What a fault and a decoy are: parameters, an effect that undoes itself, a witness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from cases.errors import ScenarioError
from cases.schema import JOB, Locus, Record, Topology

if TYPE_CHECKING:
    from injectors.recorder.knobs import Knobs
    from injectors.recorder.network import Network
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class Run(Protocol):
    """The running job as faults see it."""

    knobs: Knobs

    @property
    def pids(self) -> dict[int, int]:
        """Process of each rank of the job that is broken."""

    def metrics_port(self, response_s: float) -> int:
        """Port, on rank 0's loopback, of a service that answers after `response_s` seconds."""

    @property
    def network(self) -> Network:
        """The ranks' network; raises ScenarioError where ranks share the host's."""

    def competitors(
        self, kind: str, count: int, nice: int, core: int | None, duty: float
    ) -> AbstractContextManager[None]:
        """Let competing processes run for the length of a block."""

    def quota(self, rank: int | None, cores: float) -> AbstractContextManager[None]:
        """Hold a rank and its helpers, or the whole job, to so many CPU seconds per second."""

    def suspended(
        self, rank: int, stopped_fraction: float, period_s: float
    ) -> AbstractContextManager[None]:
        """Stop one rank's process for a part of every period."""

    def device_neighbours(self, rank: int, count: int) -> AbstractContextManager[None]:
        """Let other processes compute on a rank's GPU for the length of a block."""

    def traffic(self, source: int, target: int, flows: int) -> AbstractContextManager[None]:
        """Let another program send from one rank's host to another's in so many TCP flows."""


class Injection(Record, ABC):
    """Something done to a running job; the parameters are the record's fields.

    Attributes:
        needs: Capabilities of the machine by name, see injectors.capabilities.
        workloads: Names of the workloads in which it can act; empty: all.
        simulated: The same of workloads that exist only in the simulator; None: it has no
            `perturb`, and `why_not_simulated` says why.
        least_ranks: Ranks that the job must have.
        least_hosts: Hosts that a simulated job must have.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    workloads: ClassVar[tuple[str, ...]] = ()
    simulated: ClassVar[tuple[str, ...] | None] = None
    why_not_simulated: ClassVar[str] = "its mechanism is not modelled"
    least_ranks: ClassVar[int] = 1
    least_hosts: ClassVar[int] = 1

    @classmethod
    def fits(cls, scenario: Scenario) -> bool:
        """Tell whether it can act in the scenario's job at all, whatever its parameters."""
        if scenario.simulated_only:
            return cls.simulated_fits(scenario)
        return cls.recorded_fits(scenario)

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """The same of a job that runs for real."""
        return (
            scenario.workload in (cls.workloads or (scenario.workload,))
            and scenario.ranks >= cls.least_ranks
            and "simulator" not in cls.needs
        )

    @classmethod
    def simulated_fits(cls, scenario: Scenario) -> bool:
        """The same of a job that exists only in the simulator."""
        return (
            cls.simulated is not None
            and scenario.workload in (cls.simulated or (scenario.workload,))
            and scenario.ranks >= cls.least_ranks
            and scenario.places.hosts >= cls.least_hosts
        )

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """Why a simulated job can't show it as it should; None where it can."""
        return None

    def perturb(self, job: Job) -> None:
        """Edit the simulated job's mechanism; the job is the fault's own copy."""
        raise ScenarioError(
            f"can't be simulated ({self.why_not_simulated})", where=type(self).__name__
        )

    def settings(self) -> dict[str, Any]:
        """What must differ from the start of the job, by name (see injectors.scenario.SETTINGS).

        An injection with settings is measured in a job of its own, which stays idle while the
        healthy job runs; all others switch the healthy job itself.
        """
        return {}

    @abstractmethod
    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Act for the length of a block and undo it on every exit."""


class Fault(Injection):
    """An injection that is labelled with its cause if it is measured to cost time.

    Attributes:
        cause: Its name in the taxonomy.
        backward_alone: Whether steps show it as a longer backward of all ranks and nothing else.
        acceptable: Causes that are as right an answer.
        symptoms: Causes that are only its consequences.
    """

    cause: ClassVar[str]
    backward_alone: ClassVar[bool] = False
    acceptable: ClassVar[tuple[str, ...]] = ()
    symptoms: ClassVar[tuple[str, ...]] = ()

    def misfit(self, scenario: Scenario) -> str | None:
        """Why this scenario's job can't show it as labelled; None where it can."""
        return None

    def locus(self, topology: Topology) -> Locus:
        """Where the cause sits, never finer than the signals can tell."""
        return JOB

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """Ranks that wait because of it."""
        return ()

    @abstractmethod
    def witness(self) -> tuple[str, str]:
        """A query that is true on this case and false on its twin, and what it says."""

    def audit_witness(self) -> tuple[str, str] | None:
        """The same without a reference run; None where the signals need one to tell."""
        return None

    def simulated_witness(self) -> tuple[str, str]:
        """The witness of simulated cases, which have other signals than jobs on CPUs."""
        from injectors.sim.witnesses import WITNESSES
        from injectors.sim.witnesses.slower import slower

        return WITNESSES.get(self.cause) or slower(self.witness())


def uneven(scenario: Scenario, every: int) -> str | None:
    """Why a fault that acts every `every` steps can't be timed; None if trials are whole periods.

    Else one trial would have it more often than another.
    """
    if scenario.trials.steps % every == 0:
        return None
    return f"trials.steps must be a multiple of {every}, got {scenario.trials.steps}"


def rank_or_job(topology: Topology, rank: int | None) -> Locus:
    """The place of what acts on one rank or (None) on all; one rank alone is the job."""
    if rank is None or len(topology.ranks) == 1:
        return JOB
    return Locus(scope="rank", ranks=(rank,))


def host_or_job(topology: Topology, host: int | None) -> Locus:
    """The place of what acts on one host or (None) on all; the only host is the job."""
    name = f"host{host}"
    if host is None or all(place.host == name for place in topology.ranks):
        return JOB
    return Locus(scope="host", hosts=(name,))


def elsewhere(topology: Topology, host: int | None) -> tuple[int, ...]:
    """All ranks of other hosts: those that wait for it; nobody waits where all are hit (None)."""
    if host is None:
        return ()
    return tuple(place.rank for place in topology.ranks if place.host != f"host{host}")


def others(topology: Topology, rank: int | None) -> tuple[int, ...]:
    """All ranks but one: those that wait for it; nobody waits where all are hit (None)."""
    if rank is None:
        return ()
    return tuple(place.rank for place in topology.ranks if place.rank != rank)


class Decoy(Injection):
    """An injection that looks like a cause and must be measured to cost nothing."""

    name: ClassVar[str]
    looks_like: ClassVar[tuple[str, ...]]
