"""Collectives and kernels that want the same multiprocessors."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.nccl_settings import NcclSettings
from injectors.sim.job import ONE
from injectors.sim.names import GRADIENT_BUCKETS

# Mean length of communication kernels, beside compute on another stream and on their own.
OVERLAP = """
    SELECT avg(n.duration_ns) FILTER (busy) AS beside, avg(n.duration_ns) FILTER (NOT busy) AS alone
    FROM (SELECT k.rank, k.duration_ns,
                 EXISTS (SELECT 1 FROM {schema}trace_events c
                         WHERE c.category = 'kernel' AND c.name NOT LIKE 'nccl%'
                           AND c.rank = k.rank AND c.stream <> k.stream
                           AND c.start_ns < k.start_ns + k.duration_ns
                           AND k.start_ns < c.start_ns + c.duration_ns) AS busy
          FROM {schema}trace_events k
          WHERE k.category = 'kernel' AND k.name LIKE 'nccl%') n"""

if TYPE_CHECKING:
    from injectors.sim.job import Job


class NcclSmContention(NcclSettings):
    """Let every collective ask for `blocks` thread blocks, each of a whole multiprocessor.

    Mechanism: until compute kernels leave that many multiprocessors the collective can't run,
    and once it runs compute misses them, so both are long only where they overlap.
    Versions: NCCL_MIN_CTAS and NCCL_MAX_CTAS from 2.17 (at most 32 before 2.22, then 64);
    before that NCCL_MIN_NCHANNELS. NCCL_CGA_CLUSTER_SIZE (from 2.16, Hopper on) makes blocks
    start in groups, which then need neighbouring multiprocessors at once.
    Source: nccl#491. Not measured yet: it needs two GPUs.
    """

    cause: ClassVar[str] = "nccl_sm_contention"
    simulated: ClassVar[tuple[str, ...] | None] = (
        *GRADIENT_BUCKETS,
        "fsdp_transformer",
        "moe_transformer",
    )
    blocks: PositiveInt = 32
    cluster: PositiveInt = 1

    def variables(self) -> dict[str, str]:
        """Fix the number of blocks and how they are grouped."""
        count = str(self.blocks)
        return {
            "NCCL_MIN_CTAS": count,
            "NCCL_MAX_CTAS": count,
            "NCCL_MIN_NCHANNELS": count,
            "NCCL_CGA_CLUSTER_SIZE": str(self.cluster),
        }

    def perturb(self, job: Job) -> None:
        """Let collectives wait for multiprocessors while the device computes."""
        job.gpus.contention_q16 += self.blocks * ONE // 16

    def witness(self) -> tuple[str, str]:
        """Collectives beside compute are longer than before, and longer than those on their own."""
        return (
            f"""
            WITH now AS ({OVERLAP.format(schema="")}),
                 then_ AS ({OVERLAP.format(schema="reference.")})
            SELECT now.beside > 1.15 * then_.beside
               AND now.beside / then_.beside > 1.1 * coalesce(now.alone / then_.alone, 1)
            FROM now, then_
            """,
            "collectives that overlap with compute are longer than before, others are not",
        )
