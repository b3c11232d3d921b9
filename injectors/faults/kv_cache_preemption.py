"""Too few blocks of keys and values for the requests that run."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run
from injectors.sim.names import SERVING

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job


class KvCachePreemption(Fault):
    """Take blocks out of the pool of keys and values.

    Mechanism: requests are admitted on the blocks of their prompt; when answers grow and no
    block is free, the request that came last is evicted and computes everything again.
    Source: TensorRT-LLM issue 16827; vLLM issues 18115 and 21809.
    """

    cause: ClassVar[str] = "kv_cache_preemption"
    simulated: ClassVar[tuple[str, ...] | None] = SERVING
    workloads: ClassVar[tuple[str, ...]] = ("inference_server",)
    kv_blocks: PositiveInt

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Leave `kv_blocks` blocks an engine, or what the longest request needs."""
        return run.knobs.turned(kv_blocks=float(self.kv_blocks))

    def perturb(self, job: Job) -> None:
        """Take blocks away."""
        job.serving.kv_blocks = self.kv_blocks

    def witness(self) -> tuple[str, str]:
        """Running requests are evicted from a full pool, which they were not before."""
        return (
            """
            SELECT (SELECT max(kv_cache_usage) > 0.9
                       AND sum(num_preemptions) > 0.005 * sum(decode_tokens) FROM engine)
               AND (SELECT sum(num_preemptions) * 1.0 / sum(decode_tokens) FROM engine)
                   > 2 * (SELECT sum(num_preemptions) * 1.0 / sum(decode_tokens)
                          FROM reference.engine)
            """,
            "the pool is full and running requests are evicted, as in the reference they are not",
        )

    def simulated_misfit(self, scenario: Scenario) -> str | None:
        """Answers must outgrow what admission counted on, or hardly any request is evicted."""
        workload = scenario.build_workload()
        prompt = getattr(workload, "prompt_tokens", 0)
        answer = getattr(workload, "generation_tokens", 0)
        must = f"generation_tokens must be a third of {prompt} prompt_tokens or more"
        return None if 3 * answer >= prompt else f"{must}, got {answer}"

    def simulated_witness(self) -> tuple[str, str]:
        """As the other, by requests: their answers are longer than those of recorded jobs."""
        return (
            """
            SELECT (SELECT max(kv_cache_usage) > 0.95 FROM engine)
               AND (SELECT sum(num_preemptions) FROM engine)
                   > 0.03 * (SELECT count(*) FROM requests)
               AND (SELECT sum(num_preemptions) * 1.0 / sum(decode_tokens) FROM engine)
                   > 2 * (SELECT sum(num_preemptions) * 1.0 / sum(decode_tokens)
                          FROM reference.engine)
            """,
            "the pool is full and running requests are evicted, as in the reference they are not",
        )
