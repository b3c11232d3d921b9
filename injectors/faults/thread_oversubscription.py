"""Far more threads than cores."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from injectors.faults.base import Fault, Run
from injectors.sim.names import LOADER_BOUND, SERVING

if TYPE_CHECKING:
    from injectors.sim.job import Job


class ThreadOversubscription(Fault):
    """Split every operator over more threads than the job has cores.

    Mechanism: `torch.set_num_threads` at the job's start; a thread that finished its part waits
    for one that has not had a core yet. Operators too small to be split are not slowed.
    Source: vllm issue 9113, Hy2DL issue 48: pools sized by the host, not by the quota.
    """

    cause: ClassVar[str] = "thread_oversubscription"
    simulated: ClassVar[tuple[str, ...] | None] = LOADER_BOUND + SERVING
    threads: int = Field(ge=4, description="threads of an operator in each rank")

    def settings(self) -> dict[str, Any]:
        """Start the job with that many threads."""
        return {"threads": self.threads}

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Do nothing further: the job was started with its threads."""
        return nullcontext()

    def perturb(self, job: Job) -> None:
        """Split host work over the threads."""
        job.host.threads = self.threads

    def witness(self) -> tuple[str, str]:
        """A rank has more threads than there are cores, which push each other off them."""
        return (
            """
            WITH now AS (SELECT max(threads) AS threads,
                                sum(run_delay_ns) * 1.0 / sum(cpu_ns) AS waiting
                         FROM processes WHERE role = 'rank'),
                 then_ AS (SELECT max(threads) AS threads,
                                  sum(run_delay_ns) * 1.0 / sum(cpu_ns) AS waiting
                           FROM reference.processes WHERE role = 'rank')
            SELECT (SELECT now.threads > then_.threads + (SELECT max(cores) FROM host)
                           AND now.waiting > then_.waiting + 0.05 FROM now, then_)
            """,
            "a rank has more further threads than the host has cores, and they wait for a core"
            " runnable",
        )
