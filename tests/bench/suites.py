"""What whole simulated cases and suites cost."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from injectors.scenario import Scenario
from injectors.sim.backend import Group
from injectors.sim.recording import measure as step_seconds
from injectors.sim.recording import record
from injectors.suites import build
from tests.bench.figure import Figure, seconds

RANKS, STEPS, TRACED = 1024, 10, (0, 1, 512, 1023)
SCENARIO = {
    "name": "large",
    "workload": "ddp_transformer",
    "machine": "h100",
    "ranks": RANKS,
    "profiled_steps": 2,
    "arms": {"slow": {"fault": "gpu_noisy_neighbor", "parameters": {"processes": 1, "rank": 700}}},
    "cases": [{"arm": "healthy"}, {"arm": "slow"}],
}
CASE_LIMIT_S, BUILD_LIMIT_S, SIZE_LIMIT_GB = 10.0, 600.0, 3.0


def measure() -> Iterator[Figure]:
    """Seconds of one large case with its counterfactual, and of simulated_core on all cores."""
    # Scenarios have at least 20 steps, since healthy ones differ; this is about time alone.
    scenario = Scenario.model_validate(SCENARIO | {"steps": 20})
    group = Group(scenario.model_copy(update={"steps": STEPS}))
    large_case(group)  # compiles the engine
    name = f"a case of {RANKS} ranks with its counterfactual (s)"
    yield Figure(name, seconds(lambda: large_case(group)), CASE_LIMIT_S)
    folder = Path(tempfile.mkdtemp())
    try:
        yield Figure(
            "simulated_core, built (s)",
            seconds(lambda: build("simulated_core", folder)),
            BUILD_LIMIT_S,
        )
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        yield Figure("simulated_core on disk (GB)", size / 1e9, SIZE_LIMIT_GB)
    finally:
        shutil.rmtree(folder)


def large_case(group: Group) -> None:
    """Run the job without and with its fault, and record it: all tables, traces of four ranks."""
    injections = group.scenario.injections("slow")
    without = step_seconds(group.job("label"))
    assert step_seconds(group.job("label", injections)) > 1.05 * without
    record(group.job("case", injections), TRACED)
