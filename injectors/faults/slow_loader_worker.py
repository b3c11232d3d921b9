"""One loader worker slower than its siblings."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveFloat

from cases.schema import Locus, Topology
from injectors.faults.base import Fault, Run, others
from injectors.sim.fetches import read_time_ns
from injectors.sim.job import ONE
from injectors.sim.names import LOADER_BOUND

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class SlowLoaderWorker(Fault):
    """Let the reads of one loader worker wait.

    Mechanism: a wait before each of its reads; batches are delivered in order, so the rank waits
    whenever that worker's turn comes.
    Source: pilot recordings, one slow worker of four: mean 1.40x, median 0.99x.
    """

    cause: ClassVar[str] = "slow_loader_worker"
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier",)
    rank: NonNegativeInt = 0
    worker: NonNegativeInt = 0
    latency_ms: PositiveFloat

    def misfit(self, scenario: Scenario) -> str | None:
        """The worker must be there, and have a sibling to be slower than."""
        workers = scenario.build_workload().model_dump().get("workers", 0)
        if max(2, self.worker + 1) > workers:
            return f"needs at least {max(2, self.worker + 1)} workers, got {workers}"
        return None

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Raise the latency of the worker."""
        return run.knobs.turned(
            read_latency_s=self.latency_ms / 1e3,
            latency_rank=float(self.rank),
            latency_worker=float(self.worker),
        )

    def locus(self, topology: Topology) -> Locus:
        """The worker."""
        return Locus(scope="worker", workers=(f"rank{self.rank}/worker{self.worker}",))

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """The ranks that wait for the one whose worker is slow."""
        return others(topology, self.rank)

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """The same of simulated loaders."""
        return self.misfit(scenario)

    def perturb(self, job: Job) -> None:
        """Make that worker's fetches longer."""
        loader = job.loader
        usual_ns = loader.decode_ns + read_time_ns(job)
        slower = ONE + round(self.latency_ms * 10**6) * ONE // usual_ns
        loader.worker_q16[self.rank, self.worker] = slower

    def witness(self) -> tuple[str, str]:
        """One worker's batches take long, its siblings' what they took before."""
        return (
            """
            WITH workers AS (SELECT rank, worker, median(fetch_ns) AS t FROM loader
                             GROUP BY rank, worker),
                 ranks AS (SELECT rank, max(t) AS slowest, min(t) AS fastest, median(t) AS middle
                           FROM workers GROUP BY rank HAVING count(*) > 1),
                 then_ AS (SELECT median(fetch_ns) AS t FROM reference.loader)
            SELECT (SELECT max(slowest / fastest) > 2 FROM ranks)
               AND (SELECT min(fastest) FROM ranks) < 1.5 * (SELECT t FROM then_)
               AND (SELECT avg(data_wait_ns) FROM steps)
                   > (SELECT avg(data_wait_ns) + 0.03 * avg(duration_ns) FROM reference.steps)
            """,
            "batches of one loader worker take more than twice as long as its siblings', which"
            " take what they took in the reference, and ranks wait for batches",
        )

    def audit_witness(self) -> tuple[str, str]:
        """The same among the workers alone."""
        return (
            """
            WITH workers AS (SELECT rank, worker, quantile_cont(fetch_ns, 0.2) AS least,
                                    median(fetch_ns) AS usual FROM loader GROUP BY rank, worker)
            SELECT (SELECT max(ratio) > 1.6
                    FROM (SELECT max(least) / min(usual) AS ratio FROM workers
                          GROUP BY rank HAVING count(*) > 1))
               AND (SELECT sum(data_wait_ns) > 0.05 * sum(duration_ns) FROM steps)
            """,
            "nearly all batches of one loader worker take far longer than its siblings', and ranks"
            " wait for batches",
        )
