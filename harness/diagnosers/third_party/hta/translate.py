"""A thin layer of limits over HolisticTraceAnalysis, and what they mean in the taxonomy.

Its documentation says what each share is and gives no limits. Ours:

idle time of the GPU >= 20 % of the trace, of which the larger part is
    host wait      the CPU "has not enqueued enough kernels to keep it occupied"
    kernel wait    "an overhead of launching multiple small kernels"
    other wait     "attributed to an unknown cause": no name
non-compute time >= 20 % of the trace while less than half of the communication is overlapped
"""

from __future__ import annotations

from typing import Any

from cases.schema import Diagnosis
from harness.diagnosers.third_party.answers import UNGRADED, Said, answer

LIMIT_PERCENT = 20.0
HALF_PERCENT = 50.0
CAUSES = {
    "host_wait": "host_overhead",
    "kernel_wait": "kernel_launch_bound",
    "exposed": "communication_schedule",
}


def translate(raw: Any) -> Diagnosis:
    """Judge each rank by the limits; idle time of unknown cause makes no answer healthy."""
    overlap = {row["rank"]: row["comp_comm_overlap_pctg"] for row in raw["overlap"]}
    said: list[Said] = []
    unknown = False
    for row in raw["temporal"]:
        rank = int(row["rank"])
        if row["idle_time_pctg"] >= LIMIT_PERCENT:
            kind = _largest_wait(raw["idle"], rank)
            lost = row["idle_time_pctg"] / 100
            unknown |= kind not in CAUSES
            if kind in CAUSES:
                said.append(Said(CAUSES[kind], UNGRADED, rank=rank, lost_fraction=lost))
        hidden = overlap.get(rank)
        exposed = row["non_compute_time_pctg"]
        if hidden is not None and hidden < HALF_PERCENT and exposed >= LIMIT_PERCENT:
            said.append(Said(CAUSES["exposed"], UNGRADED, rank=rank, lost_fraction=exposed / 100))
    judged = bool(raw["temporal"]) and (bool(said) or not unknown)
    return answer(said, ranks=len(raw["temporal"]), judged=judged)


def _largest_wait(idle: list[dict[str, Any]], rank: int) -> str | None:
    """The category of idle time that is largest over a rank's streams."""
    totals: dict[str, float] = {}
    for row in idle:
        if row["rank"] == rank:
            kind = str(row["idle_category"])
            totals[kind] = totals.get(kind, 0.0) + row["idle_time"]
    return max(totals, key=lambda kind: totals[kind]) if totals else None
