"""Facts of a case by name, worked out when they are first asked for.

    facts["hot.max"]              a metric's change from the reference run, over ranks
    facts["job.kernels.growth"]   a number of traces or servers over the reference's
    facts["said.over_sockets.new"]

Names and formulas are those of `harness.diagnosers.features`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cases.case import Case
from cases.schema import RankPlace
from harness.diagnosers.features.arrays import Floats
from harness.diagnosers.features.compare import Compared, compare
from harness.diagnosers.features.numbers import of_job, over_ranks
from harness.diagnosers.features.words import setup

FULL_QUEUE = 1.5  # times the usual


class Facts:
    """Facts of one case."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def __getitem__(self, name: str) -> float:
        """One fact, NaN where it is not known."""
        known = self.job if name.startswith(("job.", "said.")) else self.ranks
        return known.get(name, float("nan"))

    @cached_property
    def compared(self) -> Compared:
        """Metrics of ranks, here and as they changed."""
        return compare(self.case)

    @cached_property
    def ranks(self) -> dict[str, float]:
        """Facts from the tables."""
        return {"slowdown": self.compared.slowdown} | over_ranks(self.compared) | setup(self.case)

    @cached_property
    def job(self) -> dict[str, float]:
        """Facts from traces, logs and servers."""
        return of_job(self.case)

    def likely(self, metric: str) -> Floats:
        """How far each rank stands out in a metric, at least 0; `-` before it for the least.

        By how its change from the reference run differs from the median rank's, without one by
        its value; `=` before it: by its change alone.
        """
        sign, name = -1 if metric.startswith("-") else 1, metric.lstrip("-=")
        known = self.compared.change[name]
        if not known.notna().any():
            known = self.compared.now[name]
        usual = 0.0 if metric.startswith("=") else float(known.median())
        apart = sign * (known - usual).to_numpy(dtype=np.float64)
        return np.asarray(np.clip(np.nan_to_num(apart), 0, None))

    def level(self, metric: str) -> float:
        """The median rank's value of a metric in this run, whatever it was before."""
        return float(self.compared.now[metric].median())

    @cached_property
    def full_queues(self) -> int:
        """Hosts whose send queues hold half more than usual while they send."""
        hosts = [place.host for place in self.places]
        growth = self.compared.change["queue"].groupby(hosts).mean()
        return int((growth > FULL_QUEUE).sum())

    @cached_property
    def whole_host_decode(self) -> float:
        """How much longer decoding takes on the host on which all ranks' workers are slowest."""
        hosts = [place.host for place in self.places]
        return float(self.compared.change["decode"].groupby(hosts).min().max())

    @cached_property
    def stages(self) -> dict[str, float]:
        """Most and least that a pipeline stage's computing grew, in parts of a step."""
        stages = [place.stage for place in self.places]
        if None in stages or len(set(stages)) < 2:
            return {"computing": float("nan"), "computing_least": float("nan")}
        growth = self.compared.change["computing"].groupby(stages).mean()
        return {"computing": float(growth.max()), "computing_least": float(growth.min())}

    @property
    def busy(self) -> float:
        """Cores from which on others are in the way: half a core, less where there are few."""
        return min(0.5, 0.05 * float(self.case.info.environment.hardware.get("cores", 64)))

    @property
    def places(self) -> tuple[RankPlace, ...]:
        """Where ranks run."""
        return self.case.info.topology.ranks
