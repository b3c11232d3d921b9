"""Metrics reported from within the loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveFloat, PositiveInt

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, others, rank_or_job, uneven
from injectors.sim.names import TRAINING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class BlockingMetricIo(Fault):
    """Let rank 0 post its metrics to a service every few steps and wait for the answer.

    Mechanism: an HTTP request over the loopback interface to a server process that answers
    after `response_s`. Trials must span a multiple of `every` steps.
    Source: Microsoft study (ICSE 2024), intermediate result upload; neuracore pull request 893.
    """

    cause: ClassVar[str] = "blocking_metric_io"
    simulated: ClassVar[tuple[str, ...] | None] = TRAINING
    response_s: PositiveFloat
    every: PositiveInt = 4

    def misfit(self, scenario: Scenario) -> str | None:
        """Trials must be whole periods."""
        return uneven(scenario, self.every)

    @contextmanager
    def inject(self, run: Run) -> Iterator[None]:
        """Tell the loop where the service listens and how often to report."""
        port = run.metrics_port(self.response_s)
        with run.knobs.turned(metrics_port=float(port), metrics_every=float(self.every)):
            yield

    def locus(self, topology: Topology) -> Locus:
        """The rank that reports."""
        return rank_or_job(topology, 0)

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """All other ranks wait for it."""
        return others(topology, 0)

    def perturb(self, job: Job) -> None:
        """Wait for the service in the loop of rank 0."""
        job.host.metric_every = self.every
        job.host.metric_ns = round(self.response_s * 10**9)

    def witness(self) -> tuple[str, str]:
        """Rank 0 stands still outside all phases, at steps of equal distance, on little CPU."""
        return (
            """
            WITH gaps AS (SELECT step, duration_ns - data_wait_ns - forward_ns - backward_ns
                                 - optimizer_ns - coalesce(checkpoint_ns, 0) AS gap
                          FROM steps WHERE rank = 0),
                 late AS (SELECT step, gap, step - lag(step) OVER (ORDER BY step) AS period
                          FROM gaps
                          WHERE gap > 0.5 * (SELECT quantile_cont(gap, 0.97) FROM gaps)),
                 now AS (SELECT sum(cpu_ns) / (SELECT count(*) FROM steps WHERE rank = 0 AND
                                start_ns < (SELECT max(time_ns) FROM processes)) AS cpu
                         FROM processes WHERE role = 'rank' AND rank = 0)
            SELECT (SELECT sum(gap) FROM late)
                   > 0.04 * (SELECT sum(duration_ns) FROM steps WHERE rank = 0)
               AND (SELECT avg((period = (SELECT mode(period) FROM late))::INT) FROM late) > 0.8
               AND (SELECT cpu FROM now)
                   < (SELECT avg(duration_ns) FROM steps WHERE rank = 0)
                     - 0.5 * (SELECT sum(gap) FROM late) / (SELECT count(*) FROM gaps)
            """,
            "rank 0 waits outside data, forward, backward, optimizer and checkpoint, on little CPU"
            " and every so many steps",
        )
