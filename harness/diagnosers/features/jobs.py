"""Numbers of the whole job, of traces, transfers, logs and servers, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from cases.case import Case, Recording
from harness.diagnosers.features.arrays import ratio
from harness.diagnosers.features.serving import serving_numbers
from harness.diagnosers.features.sizes import first_over_repeat
from harness.diagnosers.features.traces import (
    KERNELS,
    NUMBERS,
    kernel_growth,
    operator_growth,
    trace_numbers,
)
from harness.diagnosers.features.transfers import NUMBERS as TRANSFERS
from harness.diagnosers.features.transfers import transfer_kinds, transfer_numbers
from harness.diagnosers.features.words import SPOKEN, spoken

Numbers = dict[str, float]
UNKNOWN = float("nan")


def size_numbers(run: Recording) -> Numbers:
    """Return what is known of input sizes."""
    return {"first_over_repeat": first_over_repeat(run)}


def transfer_growth(now: Recording, then: Recording) -> Numbers:
    """Return how transfers of two runs compare."""
    return transfer_numbers(transfer_kinds(now), transfer_kinds(then))


OF_RUN: dict[str, Callable[[Recording], Numbers]] = {
    "traces": trace_numbers,
    "servers": serving_numbers,
    "sizes": size_numbers,
    "logs": spoken,
}
OF_BOTH: dict[str, Callable[[Recording, Recording], Numbers]] = {
    "transfers": transfer_growth,
    "kernels": kernel_growth,
    "operators": operator_growth,
}
SOURCES: dict[str, str] = {
    **dict.fromkeys(NUMBERS, "traces"),
    **dict.fromkeys(SPOKEN, "logs"),
    **dict.fromkeys(TRANSFERS, "transfers"),
    **dict.fromkeys(KERNELS, "kernels"),
    "first_over_repeat": "sizes",
    "operator_usual": "operators",
}  # all others are servers'


class Job:
    """Numbers of a case's job by name; what they are read from is read when first asked for."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._known: dict[tuple[str, str], Numbers] = {}

    def get(self, name: str) -> float:
        """One number, such as `kernels`, `kernels.growth`, `saves.new`; NaN if it is not known."""
        plain, _, how = name.partition(".")
        source = SOURCES.get(plain, "servers")
        if source in OF_BOTH:
            return self._both(source).get(name, UNKNOWN)
        now = self._run(source, "now").get(plain, UNKNOWN)
        if not how:
            return now
        then = self._run(source, "then").get(plain, UNKNOWN)
        return now - then if how == "new" else ratio(now, then)

    @cached_property
    def all(self) -> Numbers:
        """All numbers that there are, `job.` before names of numbers, `said.` before words."""
        out: Numbers = {}
        for source in OF_RUN:
            kind, how = ("said", "new") if source == "logs" else ("job", "growth")
            names = self._run(source, "now")
            out |= {f"{kind}.{name}": self.get(name) for name in names}
            both = [name for name in names if name in self._run(source, "then")]
            out |= {f"{kind}.{name}.{how}": self.get(f"{name}.{how}") for name in both}
        for source in OF_BOTH:
            out |= {f"job.{name}": value for name, value in self._both(source).items()}
        return out

    def _run(self, source: str, which: str) -> Numbers:
        """Numbers of this run (`now`) or of the reference (`then`), none without one."""
        run = self._case if which == "now" else self._case.reference
        if (source, which) not in self._known:
            self._known[source, which] = OF_RUN[source](run) if run else {}
        return self._known[source, which]

    def _both(self, source: str) -> Numbers:
        """Numbers that compare both runs; none without a reference."""
        reference = self._case.reference
        if (source, "both") not in self._known:
            found = OF_BOTH[source](self._case, reference) if reference else {}
            self._known[source, "both"] = found
        return self._known[source, "both"]
