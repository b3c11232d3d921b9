"""What is cited about a segment: one SELECT each, inside compared with outside, beside jobs alike.

A card is compared with jobs on one card, whose serial numbers are known; what has no serial number
is on neither side.
"""

from __future__ import annotations

from harness.diagnosers.features.devices import HOT_BITS
from harness.diagnosers.rules.fleets.jobs import ALIKE
from harness.diagnosers.rules.fleets.search import Segment

# Fact -> what of a job it is of, and what that says.
RATIOS: dict[str, tuple[str, str]] = {
    "slowdown": ("duration_ns * 1.0 / steps", "seconds a step"),
    "computing": ("compute_ns", "time in compute kernels"),
    "communicating": ("communication_ns", "time in collectives"),
    "copying": ("copy_ns", "time in copies"),
    "slower_clock": ("sm_clock_mhz", "SM clock"),
    "tensor_work": (
        "tensor_active_percent * step_ns * sm_clock_mhz",
        "cycles of a step with the tensor cores active",
    ),
    "received": ("pcie_rx_bytes_per_s * 1.0 * step_ns", "bytes received over PCIe in a step"),
    "read": ("loader_read_ns", "time that a worker reads storage for a batch"),
    "prepared": ("loader_cpu_ns", "CPU time that a worker takes for a batch"),
    "limit": ("power_limit_w", "enforced power limit"),
    "lanes": ("pcie_width", "PCIe lanes"),
}
DIFFERENCES: dict[str, tuple[str, str]] = {
    "recompiles": ("recompiles", "recompilations of a job"),
    "hot": (f"(event_reasons & {HOT_BITS} > 0)::INT", "share of jobs with a thermal bit"),
}


def query_of(fact: str, segment: Segment) -> str:
    """The query that gives a fact: inside over outside, or inside less outside."""
    value, _ = RATIOS[fact] if fact in RATIOS else DIFFERENCES[fact]
    take, join = ("value / nullif(usual, 0)", "/") if fact in RATIOS else ("value - usual", "-")
    keys, inside = ", ".join(ALIKE), _condition(segment)
    return (
        f"WITH alike AS (SELECT {keys}, avg({value}) AS usual FROM reference.jobs"
        f" WHERE steps > 0 GROUP BY {keys}),"
        f" beside AS (SELECT {inside} AS inside, {take} AS v FROM"
        f" (SELECT *, {value} AS value FROM jobs WHERE steps > 0) JOIN alike USING ({keys}))"
        f" SELECT avg(v) FILTER (WHERE inside) {join} avg(v) FILTER (WHERE NOT inside) FROM beside"
    )


def says(fact: str) -> str:
    """What a fact's number is."""
    if fact in RATIOS:
        return f"{RATIOS[fact][1]} over that of jobs alike, inside the segment over outside it"
    return f"{DIFFERENCES[fact][1]} more than jobs alike have, inside the segment less outside it"


def _condition(segment: Segment) -> str:
    quoted = ((column, value.replace("'", "''")) for column, value in segment.values)
    return "(" + " AND ".join(f"{column}::VARCHAR = '{value}'" for column, value in quoted) + ")"
