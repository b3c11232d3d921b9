"""A run that takes down what faults do to it, and turns it into the job's mechanisms.

Faults and decoys act on it by the same `inject` as on a real run. What is asked for is kept:
knobs and settings in the job's twin, from which its program is compiled; competitors, quotas,
stops and storage in the fields that faults of all simulated jobs edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from injectors.faults.base import Injection
from injectors.sim.job import ONE, Job
from injectors.sim.twin import Twin
from injectors.sim.workloads.cpu.operators import twin_of
from injectors.sim.workloads.cpu.translation import translate

if TYPE_CHECKING:
    from injectors.faults.base import Run

MEGABIT_BYTES = 125_000
PORT = 1  # of a service that is only noted
MEMORY_Q16 = ONE // 4  # by how much a neighbour that streams slows work on another core


def perturb(job: Job, injection: Injection) -> None:
    """Let a fault or decoy act on a twin, for good."""
    twin_of(job).settings.update(injection.settings())
    # What is noted stays: the context is only entered.
    injection.inject(cast("Run", NotedRun(job))).__enter__()
    translate(job)


class NotedKnobs:
    """Knobs that stay as they were turned."""

    def __init__(self, twin: Twin) -> None:
        self._twin = twin

    def __getitem__(self, name: str) -> float:
        return self._twin.knobs[name]

    @contextmanager
    def turned(self, **values: float) -> Iterator[None]:
        """Note values; there is no way back."""
        if strangers := sorted(set(values) - set(self._twin.knobs)):
            raise KeyError(f"knobs must be known, got {strangers}")
        self._twin.knobs.update(values)
        yield


class NotedNetwork:
    """Limits of interfaces and of paths between them."""

    def __init__(self, job: Job) -> None:
        self._job, self._twin = job, twin_of(job)

    def place(self, rank: int) -> int:
        """Return the number of a rank's interface."""
        return self._job.places.host(rank) if self._twin.hosts > 1 else rank

    @contextmanager
    def shaped(self, rank: int, rate_mbit_per_s: float) -> Iterator[None]:
        """Limit the interface of a rank."""
        with self.shaped_interface(self.place(rank), rate_mbit_per_s):
            yield

    @contextmanager
    def shaped_interface(self, place: int, rate_mbit_per_s: float) -> Iterator[None]:
        """Limit an interface."""
        self._twin.limited[place, place] = round(rate_mbit_per_s * MEGABIT_BYTES)
        yield

    @contextmanager
    def shaped_path(self, first: int, second: int, rate_mbit_per_s: float) -> Iterator[None]:
        """Limit what two interfaces send to each other."""
        ends = min(first, second), max(first, second)
        self._twin.limited[ends] = round(rate_mbit_per_s * MEGABIT_BYTES)
        yield

    @contextmanager
    def lossy(self, rank: int, probability: float) -> Iterator[None]:
        """Drop packets of a rank's interface."""
        place = self.place(rank)
        self._twin.lossy_ppm[place] = round(probability * 10**6)
        yield


class NotedRun:
    """The run."""

    def __init__(self, job: Job) -> None:
        self._job, self._twin = job, twin_of(job)
        self.knobs = NotedKnobs(self._twin)
        self.network = NotedNetwork(job)
        self.pids = {rank: rank for rank in range(job.places.ranks)}

    def metrics_port(self, response_s: float) -> int:
        """Note how long the service takes."""
        self._job.host.metric_ns = round(response_s * 10**9)
        return PORT

    @contextmanager
    def competitors(
        self, kind: str, count: int, nice: int, core: int | None, duty: float
    ) -> Iterator[None]:
        """Put competitors on the ranks' cores, or beside them."""
        host = self._job.host
        if kind == "memory":
            self._stream(count if core is None else 1, duty)
        else:
            host.hog_nice, host.hog_duty_q16 = nice, round(duty * ONE)
            self._crowd(count, core)
        yield

    def _stream(self, count: int, duty: float) -> None:
        """Slow the memory of all hosts, which are one machine; on a core one runs at a time."""
        factor = ONE + round(duty * MEMORY_Q16) * count
        hosts = range(self._job.places.hosts)
        self._job.host.memory_traffic_q16.update(dict.fromkeys(hosts, factor))

    def _crowd(self, count: int, core: int | None) -> None:
        """Give each rank those on its core; unpinned ones spread evenly, on idle cores first."""
        host, twin, places = self._job.host, self._twin, self._job.places
        if not twin.pinned:
            host.hogs.update(dict.fromkeys(range(places.hosts), count))
            return
        cores = [*range(twin.cores)] if core is None else [core % twin.cores]
        if core is None and count <= twin.cores - places.ranks:
            cores = cores[places.ranks :]
        for each in cores:
            twin.crowd_q16[each] = count * host.hog_duty_q16 // len(cores)
        for rank in range(places.ranks):
            if twin.core(rank) in cores:
                host.pinned_hogs[rank] = -(-count // len(cores))

    @contextmanager
    def quota(self, rank: int | None, cores: float) -> Iterator[None]:
        """Hold a rank, or the job as a whole, to so many CPU seconds per second."""
        ranks = range(self._job.places.ranks) if rank is None else [rank]
        each = round(cores * ONE) // len(ranks)
        self._job.host.quota_q16.update(dict.fromkeys(ranks, each))
        yield

    @contextmanager
    def suspended(self, rank: int, stopped_fraction: float, period_s: float) -> Iterator[None]:
        """Stop a rank's process for a part of every period."""
        self._job.host.suspended_q16[rank] = round(stopped_fraction * ONE)
        self._job.host.suspended_period_ns = round(period_s * 10**9)
        yield

    @contextmanager
    def device_neighbours(self, rank: int, count: int) -> Iterator[None]:
        """Do nothing: there are no devices."""
        yield

    @contextmanager
    def traffic(self, source: int, target: int, flows: int) -> Iterator[None]:
        """Let another program send over the interfaces of two ranks."""
        ends = self.network.place(source), self.network.place(target)
        self._twin.flows[ends] = flows
        yield
