"""Kernels that are tuned anew for each shape."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import PositiveInt

from injectors.faults.base import Fault, Run

if TYPE_CHECKING:
    from injectors.scenario import Scenario
    from injectors.sim.job import Job

LEAST_SIZES = 8
TRY_NS = 20_000_000  # of all algorithms of all layers once, on a GPU


class AutotunePerShape(Fault):
    """Try every convolution algorithm at the first sight of each input size.

    Mechanism: a cache keyed by shape, as in `torch.backends.cudnn.benchmark`; each of three
    algorithms runs `tries` times where a key is new. The cache is empty when it begins. With
    many sizes most steps of a short run meet a new one; repeats are fast.
    Source: pytorch#2759 and tensorflow#5048 (benchmark mode under varied shapes).
    """

    cause: ClassVar[str] = "autotune_per_shape"
    simulated: ClassVar[tuple[str, ...] | None] = ("vision", "diffusion")
    workloads: ClassVar[tuple[str, ...]] = ("image_classifier",)
    tries: PositiveInt = 1

    @classmethod
    def recorded_fits(cls, scenario: Scenario) -> bool:
        """Tell whether sizes are so many that not all are soon known."""
        sizes = getattr(scenario.build_workload(), "sizes", 1)
        return super().recorded_fits(scenario) and sizes >= LEAST_SIZES

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Switch the benchmark mode on, with nothing known yet."""
        return run.knobs.turned(tuning_tries=float(self.tries), tuned_since=time.monotonic())

    def perturb(self, job: Job) -> None:
        """Tune for a new shape every fourth step."""
        job.compiler.autotune_every = 4
        job.compiler.autotune_ns = self.tries * TRY_NS

    def witness(self) -> tuple[str, str]:
        """Of steps of one size the first is slow and later ones are not, unlike before."""
        return (
            f"""
            WITH now AS ({self._first_over_repeat("")}),
                 then_ AS ({self._first_over_repeat("reference.")})
            SELECT now.ratio > 1.15 * then_.ratio AND now.repeats >= 5
               AND (SELECT avg(data_wait_ns) < 0.5 * avg(duration_ns) FROM steps)
            FROM now, then_
            """,
            "a step with an input size not seen before is slow, one with a known size is not",
        )

    @staticmethod
    def _first_over_repeat(schema: str) -> str:
        """Time of first steps over that of later ones, of equal mix of sizes."""
        return f"""
            SELECT sum(first) / sum(later) AS ratio, count(*) AS repeats
            FROM (SELECT avg(took) FILTER (place = 1) AS first,
                         avg(took) FILTER (place > 1) AS later
                  FROM (SELECT s.rank, r.value, s.duration_ns - s.data_wait_ns AS took,
                               row_number() OVER (PARTITION BY s.rank, r.value
                                                  ORDER BY s.start_ns) AS place
                        FROM {schema}steps s JOIN {schema}runtime r
                          ON r.rank = s.rank AND r.event = 'input_size'
                         AND r.time_ns BETWEEN s.start_ns AND s.start_ns + s.duration_ns)
                  GROUP BY rank, value HAVING count(*) > 1)
        """
