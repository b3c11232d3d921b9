"""case.json of a simulated case: the job, never the problem."""

from __future__ import annotations

from cases.bundle import RunData
from cases.schema import (
    CaseInfo,
    Environment,
    Link,
    Provenance,
    RankPlace,
    Scalar,
    Signals,
    Topology,
    Workload,
)
from cases.tables import SIGNALS, TRACE_SIGNAL
from injectors.public import topology as recorded_topology
from injectors.scenario import Scenario
from injectors.sim import noise
from injectors.sim.job import Job, Places
from injectors.sim.releases import RELEASES, release

PAIRED_HOSTS = 4  # up to so many hosts each pair has a path of its own name


def topology(places: Places, has_gpus: bool, stages: bool) -> Topology:
    """Ranks on hosts, one GPU each, and the paths between hosts by name."""
    return Topology(
        ranks=tuple(
            RankPlace(
                rank=rank,
                host=f"host{places.host(rank)}",
                gpu=gpu_name(places, rank) if has_gpus else None,
                stage=places.stage(rank) if stages else None,
            )
            for rank in range(places.ranks)
        ),
        links=tuple(
            Link(name=name, ranks=ends, kind="infiniband") for name, ends in links(places).items()
        ),
        parallelism={
            name: ways
            for name, ways in (
                ("data", places.data),
                ("tensor", places.tensor),
                ("pipeline", places.pipeline),
                ("expert", places.expert),
            )
            if ways > 1 or name == "data"
        },
    )


def gpu_name(places: Places, rank: int) -> str:
    """Name of a rank's GPU."""
    return f"host{places.host(rank)}/gpu{rank % places.per_host}"


def links(places: Places) -> dict[str, tuple[int, ...]]:
    """Name the paths between hosts, with the ranks at their ends.

    Up to 4 hosts each pair has its own; of more, each host's path to the switch is named.
    """
    hosts = range(places.hosts)
    if places.hosts > PAIRED_HOSTS:
        return {f"host{host}-switch": tuple(places.ranks_of_host(host)) for host in hosts}
    return {
        f"host{first}-host{second}": tuple(
            places.ranks_of_host(first) + places.ranks_of_host(second)
        )
        for first in hosts
        for second in range(first + 1, places.hosts)
    }


def environment(scenario: Scenario, job: Job, key: int) -> Environment:
    """Versions of the case; hardware, variables and configuration, the same in all of a group."""
    machine, gpu = job.machine, job.machine.gpu
    versions = {"python": "3.11.13", **(job.versions or release(key))}
    hardware: dict[str, Scalar] = {
        "cores": machine.cores,
        "machine": "x86_64",
        "memory_gib": machine.memory_bytes >> 30,
        "hosts": job.places.hosts,
        "network_gbit_per_s": machine.nic_bytes_per_s * 8 // 10**9,
    }
    if gpu is not None:
        hardware["gpu"] = gpu.name
    config: dict[str, Scalar] = {
        **scenario.build_workload().config(),
        "ranks": scenario.ranks,
        "steps": scenario.steps,
        "profiled_steps": scenario.profiled_steps,
    }
    return Environment(
        versions=versions,
        hardware=hardware,
        variables={"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "8"},
        config=config,
    )


def twin_environment(scenario: Scenario, job: Job) -> Environment:
    """The same of a job on CPU cores, as a recording states it."""
    config: dict[str, Scalar] = {
        **scenario.build_workload().config(),
        "bucket_mb": scenario.bucket_mb,
        "pinned_ranks": scenario.pinned,
        "ranks": scenario.ranks,
        "steps": scenario.steps,
        "profiled_steps": scenario.profiled_steps,
    }
    return Environment(
        versions={"python": "3.11.13", "torch": f"{RELEASES[0]['torch']}+cpu"},
        hardware={
            "cores": scenario.cores,
            "machine": "x86_64",
            "memory_gib": job.machine.memory_bytes >> 30,
        },
        variables={"OMP_NUM_THREADS": "1"},
        config=config,
    )


def describe(scenario: Scenario, job: Job, case_id: str, run: RunData, group_key: int) -> CaseInfo:
    """Write case.json's content."""
    workload = scenario.build_workload()
    present = [name for name in SIGNALS if name in run.tables]
    if run.traces:
        present.append(TRACE_SIGNAL)
    return CaseInfo(
        id=case_id,
        title=f"{workload.title}, {scenario.ranks} rank{'s' if scenario.ranks > 1 else ''}",
        kind=workload.kind,
        shape=scenario.shape,
        question=scenario.question,
        objective=scenario.objective if scenario.question == "audit" else None,
        workload=Workload(name=scenario.workload, parameters=workload.config()),
        topology=recorded_topology(scenario, devices=0)
        if job.twin
        else topology(
            job.places, job.machine.gpu is not None, workload.stage(0, scenario.ranks) is not None
        ),
        environment=twin_environment(scenario, job)
        if job.twin
        else environment(scenario, job, group_key),
        signals=Signals(
            present=tuple(present),
            absent=tuple(name for name in SIGNALS if name not in present),
        ),
        provenance=Provenance(backend="simulated"),
    )


def sampled_ranks(places: Places, group_key: int, count: int) -> tuple[int, ...]:
    """Ranks that get traces: rank 0 and others drawn by the group, wherever the fault is."""
    order = noise.permutation(noise.key(group_key, "sampled"), places.ranks)
    others = [int(rank) for rank in order if rank != 0]
    return tuple(sorted([0, *others[: count - 1]]))
