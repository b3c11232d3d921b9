"""The public half of a recorded case: what case.json says, and what is withheld."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from cases.bundle import RunData
from cases.sanitize import allowed_variables
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
from injectors.scenario import Scenario, Withheld

PROGRESS_SPAN = 20


def case_id(scenario: Scenario, window: str) -> str:
    """Return an opaque id that follows from the scenario, so recording again keeps it."""
    return hashlib.sha256(f"{scenario.digest}/{window}".encode()).hexdigest()[:12]


def topology(scenario: Scenario, devices: int) -> Topology:
    """Ranks on their hosts, joined by named links where there is more than one."""
    ranks, workload = range(scenario.ranks), scenario.build_workload()
    ends: dict[str, tuple[int, ...]]
    if scenario.hosts > 1:
        ends = paths_between_hosts(scenario)
    elif scenario.ranks == 2:
        ends = {"rank0-rank1": (0, 1)}
    else:
        ends = {f"rank{rank}-switch": (rank,) for rank in ranks}
    rate = scenario.link_mbit_per_s
    kind = "ethernet" if rate is None else f"ethernet {rate:g} Mbit/s"
    return Topology(
        ranks=tuple(
            RankPlace(
                rank=r,
                host=f"host{scenario.host(r)}",
                gpu=f"host{scenario.host(r)}/gpu{r % devices}" if devices else None,
                stage=workload.stage(r, scenario.ranks),
            )
            for r in ranks
        ),
        links=tuple(Link(name=name, ranks=ends[name], kind=kind) for name in ends)
        if scenario.ranks > 1
        else (),
        parallelism=workload.parallelism(scenario.ranks),
    )


def paths_between_hosts(scenario: Scenario) -> dict[str, tuple[int, ...]]:
    """Name the path between each two hosts, with the ranks at both of its ends."""
    ranks, hosts = range(scenario.ranks), range(scenario.hosts)
    return {
        f"host{first}-host{second}": tuple(
            rank for rank in ranks if scenario.host(rank) in (first, second)
        )
        for first in hosts
        for second in range(first + 1, scenario.hosts)
    }


def describe(
    scenario: Scenario, window: str, run: RunData, environment: Environment, devices: int
) -> CaseInfo:
    """Write case.json's content: the job, never the problem."""
    workload = scenario.build_workload()
    present = [name for name in SIGNALS if name in run.tables]
    if run.traces:
        present.append(TRACE_SIGNAL)
    config: dict[str, Scalar] = {
        **workload.config(),
        "bucket_mb": scenario.bucket_mb,
        "pinned_ranks": scenario.pinned,
        "ranks": scenario.ranks,
        "steps": scenario.steps,
        "profiled_steps": scenario.profiled_steps,
    }
    return CaseInfo(
        id=case_id(scenario, window),
        title=f"{workload.title}, {scenario.ranks} rank{'s' if scenario.ranks > 1 else ''}",
        kind=workload.kind,
        shape=scenario.shape,
        question=scenario.question,
        objective=scenario.objective if scenario.question == "audit" else None,
        workload=Workload(name=scenario.workload, parameters=workload.config()),
        topology=topology(scenario, devices),
        environment=environment.model_copy(update={"config": config}),
        signals=Signals(
            present=tuple(present),
            absent=tuple(name for name in SIGNALS if name not in present),
        ),
        provenance=Provenance(
            backend="torch_cuda" if devices else "torch_cpu",
            profiler_overhead=profiler_overhead(run, scenario.profiled_steps),
        ),
    )


def this_environment(cores: int, variables: Mapping[str, str]) -> tuple[Environment, int]:
    """Return versions, hardware and allow-listed variables, and the number of GPUs."""
    import torch

    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    if devices:
        versions["cuda"] = str(torch.version.cuda)
        versions["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    hardware: dict[str, Scalar] = {
        "cores": cores,
        "machine": platform.machine(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
    }
    if devices:
        hardware["gpu"] = torch.cuda.get_device_name(0)
    return Environment(
        versions=versions, hardware=hardware, variables=allowed_variables(variables)
    ), devices


def read_window(folder: Path) -> RunData:
    """Read back what a session wrote for one window."""
    tables = {
        path.stem: pq.read_table(path).to_pandas() for path in sorted(folder.glob("*.parquet"))
    }
    traces = {
        int(path.name.removeprefix("rank").partition(".")[0]): path.read_bytes()
        for path in sorted(folder.glob("rank*.json.gz"))
    }
    return RunData(tables, traces)


def withhold(run: RunData, what: Withheld) -> RunData:
    """Leave out what the diagnoser shall not get.

    `all_but_progress` keeps the job's log and rank 0's wall time averaged over 20 steps, as
    a training log would show it: no phases, no ranks, no traces, no host. `all_but_steps` keeps
    the job's log and the steps of all ranks.
    """
    if what == "nothing":
        return run
    steps = run.tables["steps"]
    kept = progress(steps) if what == "all_but_progress" else steps
    return RunData({"steps": kept, "logs": run.tables["logs"]}, {})


def progress(steps: pd.DataFrame) -> pd.DataFrame:
    """Average rank 0's wall time over spans of 20 steps; phases are left null.

    The first step, which may set things up, is in no average.
    """
    own = steps[(steps["rank"] == 0) & (steps["step"] > 0)]
    spans = own.groupby(own["step"] // PROGRESS_SPAN)
    return pd.DataFrame(
        {
            "rank": 0,
            "step": spans["step"].max(),
            "span": spans["step"].count(),
            "start_ns": spans["start_ns"].min(),
            "duration_ns": spans["duration_ns"].mean().round().astype("int64"),
            "tokens": spans["tokens"].sum(),
        }
    ).reset_index(drop=True)


def mean_step_s(run: RunData) -> float:
    """Mean wall seconds of a step, each rank's first step left out (it may set things up)."""
    steps = run.tables["steps"]
    return float(steps.loc[steps["step"] > 0, "duration_ns"].mean() / 1e9)


def profiler_overhead(run: RunData, profiled: int) -> float | None:
    """Median wall time of the profiled steps over that of the others; None without traces.

    The profiled steps are the window's last. The first step and the profiler's own warm-up, the
    step before them, count for neither side.
    """
    if not run.traces:
        return None
    steps = run.tables["steps"]
    begin = steps["step"].max() + 1 - profiled
    plain = steps.loc[steps["step"].between(1, begin - 2), "duration_ns"]
    inside = steps.loc[steps["step"] >= begin, "duration_ns"]
    return round(float(inside.median() / plain.median()), 3)
