"""Witnesses: true where their mechanism is, in any segment of their columns, false elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pandas as pd
import pytest

from cases.tables import to_arrow
from injectors.fleet.arms import Trial
from injectors.fleet.faults import FLEET_FAULTS
from injectors.fleet.settings import SegmentColumn
from injectors.fleet.table import jobs_table
from injectors.fleet.witnesses import QUERIES, witness_sql

SEGMENTS: dict[str, tuple[SegmentColumn, ...]] = {
    "kernel_regression": ("driver",),
    "nccl_tuning_regression": ("nccl", "ranks"),
    "thermal_throttle": ("machine",),
    "power_cap": ("machine",),
    "gpu_silicon_variability": ("gpu_serial",),
    "pcie_downgrade": ("gpu_serial",),
    "storage_fetch_stall": ("storage",),
    "dataloader_cpu_bound": ("image",),
    "recompile_limit_eager_fallback": ("framework", "config"),
    "vram_sysmem_spill": ("driver", "config"),
    "precision_fallback": ("framework", "config"),
}
CAUSES = sorted(FLEET_FAULTS)
SOFTWARE = ("framework", "nccl", "image", "storage")


def asks(sql: str, made: Trial) -> bool:
    """Whether a query is true of an arm's tables."""
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE SCHEMA reference")
    for name, period, steps in (
        ("reference.jobs", made.earlier, made.earlier.healthy),
        ("main.jobs", made.later, made.shipped),
    ):
        written = to_arrow("jobs", jobs_table(period, steps))
        view = name.replace(".", "_")
        connection.register(view, written)
        connection.execute(f"CREATE VIEW {name} AS FROM {view}")
    answer: pd.DataFrame = connection.execute(sql).df()
    return bool(answer.iloc[0, 0])


@pytest.mark.parametrize("cause", CAUSES)
def test_a_witness_is_true_of_its_own_fault_alone(trial: Callable[..., Trial], cause: str) -> None:
    made = trial(cause, SEGMENTS[cause], "severe")
    found = {other for other in CAUSES if asks(witness_sql(other, SEGMENTS[other])[0], made)}
    assert found == {cause}


@pytest.mark.parametrize(
    "confounder",
    ["job_mix_shift", "traffic_mix", "survivor_bias", "diurnal_temperature", "machine_scatter",
     "two_mode_shift", "killed_jobs"],
)  # fmt: skip
def test_no_witness_is_true_of_a_confounder(trial: Callable[..., Trial], confounder: str) -> None:
    made = trial(confounders=[confounder])
    asked = [*SEGMENTS.items(), *(("kernel_regression", (column,)) for column in SOFTWARE)]
    assert not [pair for pair in asked if asks(witness_sql(*pair)[0], made)]


@pytest.mark.parametrize("cause", [c for c in CAUSES if c != "pcie_downgrade"])
def test_no_witness_is_true_below_the_threshold(trial: Callable[..., Trial], cause: str) -> None:
    made = trial(cause, SEGMENTS[cause], "slight")
    assert not asks(witness_sql(cause, SEGMENTS[cause])[0], made)


def test_a_witness_names_no_value(trial: Callable[..., Trial]) -> None:
    versions = trial().later.world.fleet.versions
    for cause in CAUSES:
        sql, says = witness_sql(cause, SEGMENTS[cause])
        assert not [v for names in versions.values() for v in names if v in sql + says]
        assert "\n" not in sql
        assert says == QUERIES[cause].says
