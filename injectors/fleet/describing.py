"""case.json of a fleet case: the fleet, never the problem; the same for all cases of a group."""

from __future__ import annotations

from cases.schema import (
    CaseInfo,
    Environment,
    Provenance,
    RankPlace,
    Signals,
    Topology,
    Workload,
)
from cases.tables import SIGNALS
from injectors.fleet.fleet import Fleet


def describe(fleet: Fleet, case_id: str) -> CaseInfo:
    """Write case.json's content.

    The topology's hosts are the machines and its GPUs their serial numbers of the later period;
    ranks only number the GPUs.
    """
    group = fleet.group
    absent = tuple(name for name in SIGNALS if name != "jobs")
    return CaseInfo(
        id=case_id,
        title=f"Fleet of {group.machines} machines over {group.days} days",
        kind="fleet",
        shape="run",
        question="regression",
        workload=Workload(name="fleet", parameters={"days": group.days}),
        topology=topology(fleet),
        environment=Environment(
            hardware={
                "machines": group.machines,
                "gpus_per_machine": group.gpus_per_machine,
                "gpu_models": len(group.cards),
            },
            config={"days": group.days, "models": len(group.models)},
        ),
        signals=Signals(present=("jobs",), absent=absent),
        provenance=Provenance(backend="simulated"),
    )


def topology(fleet: Fleet) -> Topology:
    """Every GPU as a place of its own on its machine."""
    serials = fleet.serials(later=True)
    return Topology(
        ranks=tuple(
            RankPlace(rank=number, host=fleet.machines[machine], gpu=str(serials[number]))
            for number, machine in enumerate(fleet.gpu_machine.tolist())
        )
    )
