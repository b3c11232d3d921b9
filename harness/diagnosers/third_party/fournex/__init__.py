"""fournex: one rank's trace with samples of nvidia-smi, judged by `frx analyze --json`."""

from __future__ import annotations

from typing import Any

from cases.case import Case
from harness.diagnosers.third_party.adapter import Adapter, traces_of
from harness.diagnosers.third_party.fournex.translate import CAUSES, translate
from harness.diagnosers.third_party.rows import rows

MIB = 2**20
SAMPLED = ("rank", "utilization_percent", "memory_utilization_percent")
MEMORY = ("memory_used_bytes", "memory_total_bytes")


def inputs(case: Case) -> dict[str, Any]:
    """Give each traced rank the samples of its host's GPUs, as nvidia-smi would have seen them."""
    hosts = {place.rank: place.host for place in case.info.topology.ranks}
    samples: dict[str, list[list[Any]]] = {}
    for row in rows(case.gpu, (*SAMPLED, *MEMORY), ("rank",)):
        mib = [None if row[name] is None else row[name] // MIB for name in MEMORY]
        samples.setdefault(hosts[row["rank"]], []).append([*(row[n] for n in SAMPLED), *mib])
    traces = traces_of(case)["traces"]
    return {
        "traces": traces,
        "gpu_samples": {rank: samples.get(hosts[int(rank)], []) for rank in traces},
    }


diagnose = Adapter(
    "fournex",
    version=1,
    causes=tuple(cause for cause in CAUSES.values() if cause),
    translate=translate,
    needs={"signals": ["trace_events"], "kinds": ["training"], "gpus": True},
    inputs=inputs,
)
