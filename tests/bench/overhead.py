"""What the harness itself costs per case, with a diagnoser that does nothing."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from cases.bundle import RunData, write_case
from cases.schema import (
    CaseInfo,
    Environment,
    Provenance,
    RankPlace,
    Signals,
    Topology,
    Workload,
)
from harness.sandbox.level import Level, why_no_bubblewrap
from harness.sandbox.limits import Limits
from harness.sandbox.worker import Place, Task, Worker, public_code
from tests.bench.figure import Figure, seconds

CASES = 60
LIMITS_MS: dict[Level, float] = {"bwrap": 25.0, "process": 15.0}
NO_OP = 'def diagnose(case):\n    return {"verdict": "healthy"}\n'


def measure() -> Iterator[Figure]:
    """Median milliseconds per case, from handing it over to wiping it away."""
    for level, limit in LIMITS_MS.items():
        if level == "process" or why_no_bubblewrap() is None:
            yield Figure(f"no-op case, {level} (ms)", median_ms(level), limit)


def median_ms(level: Level) -> float:
    """Run one case many times over in one worker."""
    with tempfile.TemporaryDirectory() as folder, public_code() as code:
        file, case = Path(folder) / "noop.py", Path(folder) / "case0"
        file.write_text(NO_OP)
        write_small_case(case)
        target = {"name": "noop", "file": str(file), "function": "diagnose", "search": []}
        place = Place(level, Limits(), code, {})
        with Worker(Task(target, shown=(file,)), place) as worker:
            worker.run(case)
            return 1000 * statistics.median(seconds(lambda: worker.run(case)) for _ in range(CASES))


def write_small_case(folder: Path) -> None:
    """Write a case of one rank and a thousand steps."""
    info = CaseInfo(
        id=folder.name,
        title="Small job",
        kind="training",
        shape="run",
        question="audit",
        objective="Is time being wasted?",
        workload=Workload(name="small"),
        topology=Topology(ranks=(RankPlace(rank=0, host="host0"),)),
        environment=Environment(),
        signals=Signals(present=("steps",)),
        provenance=Provenance(backend="torch_cpu"),
    )
    steps = pd.DataFrame({"rank": 0, "step": range(1000), "span": 1, "duration_ns": 10_000_000})
    steps["start_ns"] = steps["step"] * 10_000_000
    run = RunData({"steps": steps})
    write_case(folder, info, run.tables, run.traces, None)
