"""The part of the network that the job shares with others, whose traffic comes and goes."""

from __future__ import annotations

from injectors.sim import noise
from injectors.sim.job import ONE, Flows
from injectors.sim.sharing import FairLink, Flow

JOB = "job"


class Spine:
    """A shared link on which the job may always send; others do for a part of each period.

    Args:
        flows: Of other jobs.
        bytes_per_s: What the link carries.
        seed: Of when they come.
    """

    def __init__(self, flows: Flows, bytes_per_s: int, seed: int) -> None:
        self._flows, self._seed = flows, seed
        self._link = FairLink(bytes_per_s)
        self._link.add(Flow(JOB, 0))
        self._periods = 0

    def share_q16(self, begin_ns: int, end_ns: int) -> int:
        """Return the share of the link that the job has between two times."""
        if not self._flows.count or not self._flows.on_ns:
            return ONE
        period = self._flows.period_ns
        while self._periods * period <= end_ns:
            self._add(self._periods)
            self._periods += 1
        # A period's traffic may come only while it lies ahead.
        self._link.run(max(min(end_ns, self._periods * period - 1), self._link.now_ns))
        return max(self._link.share_q16(JOB, begin_ns, max(end_ns, begin_ns + 1)), 1)

    def _add(self, period: int) -> None:
        flows, length = self._flows, self._flows.period_ns
        on_ns = min(flows.on_ns, length)
        for number in range(flows.count):
            draw = noise.key(self._seed, "background", number, period) >> 32
            begin = period * length + ((length - on_ns) * draw >> 32)
            self._link.add(Flow(f"{number}/{period}", begin, begin + on_ns))
