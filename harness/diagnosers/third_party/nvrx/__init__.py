"""nvidia-resiliency-ext: scores ranks by their kernels and sections, and names stragglers."""

from __future__ import annotations

from typing import Any

from cases.case import Case
from harness.diagnosers.third_party.adapter import Adapter, traces_of
from harness.diagnosers.third_party.nvrx.translate import GPU, translate
from harness.diagnosers.third_party.rows import rows

SECTIONS = {
    "forward": "forward_ns",
    "backward": "backward_ns",
    "optimizer": "optimizer_ns",
}


def inputs(case: Case) -> dict[str, Any]:
    """Give the times of sections in seconds by rank, and the traces for those of kernels."""
    sections: dict[str, dict[str, list[float]]] = {}
    for row in rows(case.steps, ("rank", *SECTIONS.values()), ("rank",)):
        of_rank = sections.setdefault(str(row["rank"]), {})
        for name, column in SECTIONS.items():
            if row[column] is not None:
                of_rank.setdefault(name, []).append(row[column] / 1e9)
    hosts = {str(place.rank): place.host for place in case.info.topology.ranks}
    return {**traces_of(case), "sections": sections, "hosts": hosts}


diagnose = Adapter(
    "nvrx",
    version=1,
    causes=(GPU,),
    translate=translate,
    needs={"signals": ["trace_events"], "kinds": ["training"], "gpus": True},
    inputs=inputs,
)
