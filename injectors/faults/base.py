"""What a fault and a decoy are: parameters, an effect that undoes itself, a witness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar, Protocol

from cases.schema import JOB, Locus, Record, Topology

if TYPE_CHECKING:
    from injectors.recorder.knobs import Knobs
    from injectors.recorder.network import Network


class Run(Protocol):
    """The running job as faults see it."""

    knobs: Knobs

    @property
    def network(self) -> Network:
        """The ranks' network; raises ScenarioError where ranks share the host's."""

    def competitors(
        self, kind: str, count: int, nice: int, core: int | None, duty: float
    ) -> AbstractContextManager[None]:
        """Let competing processes run for the length of a block."""


class Injection(Record, ABC):
    """Something done to a running job; the parameters are the record's fields."""

    needs: ClassVar[tuple[str, ...]] = ()  # capabilities by name, see injectors.capabilities

    @abstractmethod
    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Act for the length of a block and undo it on every exit."""


class Fault(Injection):
    """An injection that is labelled with its cause if it is measured to cost time."""

    cause: ClassVar[str]
    acceptable: ClassVar[tuple[str, ...]] = ()
    symptoms: ClassVar[tuple[str, ...]] = ()

    def locus(self, topology: Topology) -> Locus:
        """Where the cause sits, never finer than the signals can tell."""
        return JOB

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """Ranks that wait because of it."""
        return ()

    @abstractmethod
    def witness(self) -> tuple[str, str]:
        """A query that is true on this case and false on its twin, and what it says."""


class Decoy(Injection):
    """An injection that looks like a cause and must be measured to cost nothing."""

    name: ClassVar[str]
    looks_like: ClassVar[tuple[str, ...]]
