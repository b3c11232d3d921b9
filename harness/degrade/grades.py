"""All degradations, each with its grades from mild to severe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.degrade.clocks import clock_skew
from harness.degrade.copies import CaseCopy
from harness.degrade.cut_traces import truncated_traces
from harness.degrade.lost_events import dropped_events
from harness.degrade.measurements import measurement_noise
from harness.degrade.profiling import profiler_overhead
from harness.degrade.ranks import missing_ranks
from harness.degrade.telemetry import coarse_telemetry

Change = Callable[[CaseCopy, float, int], CaseCopy]


@dataclass(frozen=True)
class Degradation:
    """One way in which recordings get worse.

    Attributes:
        about: What happens, in a few words.
        levels: The grades, from mild to severe.
        unit: How a level is written, with `{}` for its number.
        change: (case, level, seed) -> the degraded copy, or the case itself where it has nothing
            of the kind.
        scale: What a level is multiplied with to be written.
    """

    about: str
    levels: tuple[float, ...]
    unit: str
    change: Change
    scale: float = 1.0

    def shown(self, level: float) -> str:
        """Write one level.

        >>> DEGRADATIONS["missing_ranks"].shown(0.25)
        '25 % of ranks'
        """
        return self.unit.format(f"{level * self.scale:g}")

    def at(self, level: float, seed: int) -> Callable[[CaseCopy], CaseCopy]:
        """Return what degrades a case to one level."""
        return lambda copy: self.change(copy, level, seed)


DEGRADATIONS: dict[str, Degradation] = {
    "missing_ranks": Degradation(
        "nothing was collected from some ranks",
        (0.25, 0.5, 0.75),
        "{} % of ranks",
        missing_ranks,
        100,
    ),
    "truncated_traces": Degradation(
        "traces end early", (0.5, 0.75, 0.9), "{} % of the time", truncated_traces, 100
    ),
    "coarse_telemetry": Degradation(
        "samples are further apart", (2, 5, 20), "{} times the period", coarse_telemetry
    ),
    "clock_skew": Degradation(
        "clocks of hosts are apart", (1e6, 1e7, 1e8, 1e9), "{} ms", clock_skew, 1e-6
    ),
    "dropped_events": Degradation(
        "events are lost", (0.05, 0.2, 0.5), "{} % of events", dropped_events, 100
    ),
    "noise": Degradation(
        "measurements are off", (0.05, 0.2, 0.5), "{} % deviation", measurement_noise, 100
    ),
    "profiler_overhead": Degradation(
        "profiled steps take longer", (1.2, 1.5, 2.0, 3.0), "{} times as long", profiler_overhead
    ),
}
