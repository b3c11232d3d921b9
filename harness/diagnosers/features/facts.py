"""Facts of a case by name, worked out when they are first asked for.

    facts["hot.max"]              a metric's change from the reference run, over ranks
    facts["job.kernels.growth"]   a number of traces or servers over the reference's
    facts["said.over_sockets.new"]

Names and formulas are those of `harness.diagnosers.features`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd

from cases.case import Case
from cases.schema import RankPlace
from harness.diagnosers.features.arrays import Floats, reduced
from harness.diagnosers.features.compare import Compared
from harness.diagnosers.features.jobs import Job
from harness.diagnosers.features.numbers import NAMES, over_ranks
from harness.diagnosers.features.words import setup

FULL_QUEUE = 1.5  # times the usual


class Facts:
    """Facts of one case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.compared = Compared(case)
        self.job = Job(case)
        self._known = setup(case)

    def __getitem__(self, name: str) -> float:
        """One fact, NaN where it is not known."""
        if name not in self._known:
            self._known[name] = self._work_out(name)
        return self._known[name]

    def _work_out(self, name: str) -> float:
        kind, _, rest = name.partition(".")
        if kind in ("job", "said"):
            return self.job.get(rest)
        return self.compared.slowdown if name == "slowdown" else over_ranks(self.compared, name)

    @property
    def all(self) -> dict[str, float]:
        """All facts that there are."""
        of_ranks = {name: self[name] for name in ("slowdown", *NAMES)}
        return of_ranks | setup(self.case) | self.job.all

    def likely(self, metric: str) -> Floats:
        """How far each rank stands out in a metric, at least 0; `-` before it for the least.

        By how its change from the reference run differs from the median rank's, without one by
        its value; `=` before it: by its change alone.
        """
        sign, name = -1 if metric.startswith("-") else 1, metric.lstrip("-=")
        known = self.compared.change(name)
        if np.isnan(known).all():
            known = self.compared.now(name)
        usual = 0.0 if metric.startswith("=") else reduced(known, np.median)
        return np.asarray(np.clip(np.nan_to_num(sign * (known - usual)), 0, None))

    def level(self, metric: str) -> float:
        """The median rank's value of a metric in this run, whatever it was before."""
        return reduced(self.compared.now(metric), np.median)

    @cached_property
    def full_queues(self) -> int:
        """Hosts whose send queues hold half more than usual while they send."""
        hosts = [place.host for place in self.places]
        growth = pd.Series(self.compared.change("queue")).groupby(hosts).mean()
        return int((growth > FULL_QUEUE).sum())

    @cached_property
    def whole_host_decode(self) -> float:
        """How much longer decoding takes on the host on which all ranks' workers are slowest."""
        hosts = [place.host for place in self.places]
        return float(pd.Series(self.compared.change("decode")).groupby(hosts).min().max())

    @cached_property
    def stages(self) -> dict[str, float]:
        """Most and least that a pipeline stage's computing grew, in parts of a step."""
        stages = [place.stage for place in self.places]
        if None in stages or len(set(stages)) < 2:
            return {"computing": float("nan"), "computing_least": float("nan")}
        growth = pd.Series(self.compared.change("computing")).groupby(stages).mean()
        return {"computing": float(growth.max()), "computing_least": float(growth.min())}

    @property
    def busy(self) -> float:
        """Cores from which on others are in the way: half a core, less where there are few."""
        return min(0.5, 0.05 * float(self.case.info.environment.hardware.get("cores", 64)))

    @property
    def places(self) -> tuple[RankPlace, ...]:
        """Where ranks run."""
        return self.case.info.topology.ranks
