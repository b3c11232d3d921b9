"""What faults of NCCL have in common: a job of its own, started with other variables."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from cases.schema import Topology
from injectors.faults.base import Fault, Run

# Collectives of the same bytes take at least this much longer, on every rank.
SLOWER = """(
    SELECT min(now.t / then_.t) > 1.15
    FROM (SELECT rank, avg(completed_ns - created_ns) AS t FROM collectives GROUP BY rank) now
    JOIN (SELECT rank, avg(completed_ns - created_ns) AS t FROM reference.collectives
          GROUP BY rank) then_ USING (rank))"""


class NcclSettings(Fault):
    """A fault that consists in NCCL's variables, which it reads once, at the job's start.

    The job's log repeats NCCL's lines about its network, the path of each channel and the
    variables that were set (see injectors.recorder.nccl_log); witnesses ask for them.
    """

    needs: ClassVar[tuple[str, ...]] = ("cuda", "nccl", "several_gpus")
    least_ranks: ClassVar[int] = 2

    def variables(self) -> dict[str, str]:
        """Return the variables that the ranks are started with."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """The variables hold from the start."""
        return {"environment": self.variables()}

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Do nothing more: the job was started so."""
        return nullcontext()

    def victims(self, topology: Topology) -> tuple[int, ...]:
        """Every rank waits for its collectives."""
        return tuple(place.rank for place in topology.ranks)


def said(pattern: str) -> str:
    """Return a condition: NCCL's log has such a line here and not in the reference.

    >>> said("via SHM").count("via SHM")
    2
    """
    return f"""(
    EXISTS (SELECT 1 FROM logs WHERE message LIKE '%NCCL INFO%{pattern}%')
    AND NOT EXISTS (SELECT 1 FROM reference.logs WHERE message LIKE '%NCCL INFO%{pattern}%'))"""
