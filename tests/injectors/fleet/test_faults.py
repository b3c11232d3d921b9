"""Every fault edits its mechanism in its segment and touches nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cases.taxonomy import Taxonomy
from injectors.fleet.arms import Trial, mean_s
from injectors.fleet.faults import FLEET_FAULTS, edits
from injectors.fleet.settings import Injected, read_matrix
from injectors.fleet.table import jobs_table
from injectors.fleet.witnesses import QUERIES
from injectors.label_rule import FAULTY_ABOVE, HEALTHY_BELOW

# Where each cause is injected here, and which of the table's parts of a step it may change.
SEGMENTS: dict[str, tuple[str, ...]] = {
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
PARTS = ("compute_ns", "communication_ns", "copy_ns", "loader_read_ns", "loader_cpu_ns")
OWN_PARTS: dict[str, set[str]] = {
    "nccl_tuning_regression": {"communication_ns"},
    "pcie_downgrade": {"copy_ns", "communication_ns"},
    "storage_fetch_stall": {"loader_read_ns"},
    "dataloader_cpu_bound": {"loader_cpu_ns"},
}
CAUSES = sorted(FLEET_FAULTS)


@pytest.fixture
def broken(trial):
    """An arm with a fault of one cause where it can act."""

    def make(cause: str, grade: str = "medium") -> Trial:
        return trial(cause, SEGMENTS[cause], grade)

    return make


def users_of(made: Trial) -> np.ndarray:
    """Jobs that a fault may touch: those of the segment, and all that use its GPU."""
    seats = made.later.world.seat_columns
    inside = np.logical_and.reduce(
        [seats[column].astype(str) == value for column, value in made.segment.items()]
    )
    job = np.zeros(len(made.affected), dtype=bool)
    job[made.later.world.seat_job[inside]] = True
    return job


def test_every_fault_is_a_cause_of_the_taxonomy_with_a_query() -> None:
    assert set(FLEET_FAULTS) == set(QUERIES) == set(SEGMENTS)
    assert set(Taxonomy.load().causes).issuperset(FLEET_FAULTS)


@pytest.mark.parametrize("cause", CAUSES)
def test_switching_a_fault_off_changes_nothing_else(broken, cause: str) -> None:
    made = broken(cause)
    on, off = (jobs_table(made.later, made.steps(chosen)) for chosen in ((0,), ()))
    order = np.argsort(made.later.world.start_ns, kind="stable")
    touched = users_of(made)[order]
    pd.testing.assert_frame_equal(on[~touched], off[~touched])
    assert 8 <= touched.sum() < len(touched)
    assert not on[touched].equals(off[touched])


@pytest.mark.parametrize("cause", CAUSES)
def test_no_fault_changes_what_a_job_is_or_where_it_runs(broken, cause: str) -> None:
    made = broken(cause)
    on, off = (jobs_table(made.later, made.steps(chosen)) for chosen in ((0,), ()))
    named = [*on.columns[: list(on.columns).index("start_ns") + 1], "requested_ns", "batch_size"]
    pd.testing.assert_frame_equal(on[named], off[named])


@pytest.mark.parametrize("cause", CAUSES)
def test_a_fault_changes_its_own_part_of_a_step(broken, cause: str) -> None:
    made = broken(cause)
    on, off = made.steps((0,)), made.steps(())
    names = {"loader_read_ns": "read_ns", "loader_cpu_ns": "decode_ns"}
    changed = {
        part
        for part in PARTS
        if (getattr(on, names.get(part, part)) != getattr(off, names.get(part, part))).any()
    }
    assert changed == OWN_PARTS.get(cause, {"compute_ns"})


@pytest.mark.parametrize("cause", CAUSES)
def test_grades_cost_more_and_more(broken, cause: str) -> None:
    grades = [g for g in ("slight", "mild", "medium", "severe") if g in _grades(cause)]
    trials = [broken(cause, grade) for grade in grades]
    ratios = [
        mean_s(made.steps((0,)), made.affected) / mean_s(made.steps(()), made.affected)
        for made in trials
    ]
    assert ratios == sorted(ratios)
    assert ratios[-1] > FAULTY_ABOVE
    if "slight" in grades:
        assert 1 <= ratios[0] < HEALTHY_BELOW


def _grades(cause: str) -> set[str]:
    return set.intersection(*(set(grades) for grades in FLEET_FAULTS[cause].edits.values()))


def test_a_link_at_half_width_doubles_its_copies(trial) -> None:
    made = trial("pcie_downgrade", ["gpu_serial"], "mild")
    on, off = made.steps((0,)), made.steps(())
    chosen = made.affected & (off.copy_ns > 10**6)
    assert (on.copy_ns[chosen] / off.copy_ns[chosen]).tolist() == pytest.approx(
        [2.0] * chosen.sum(), rel=1e-4
    )
    assert set(on.pcie_width[chosen]) == {8}


def test_a_pool_at_half_its_bandwidth_is_hidden_by_prefetching(trial) -> None:
    made = trial("storage_fetch_stall", ["storage"], "slight")
    on, off = made.steps((0,)), made.steps(())
    assert (on.read_ns[made.affected] / off.read_ns[made.affected]).min() > 1.7
    assert mean_s(on, made.affected) / mean_s(off, made.affected) < 1.005


def test_eager_code_starts_at_the_limit_of_recompilations(trial) -> None:
    made = trial("recompile_limit_eager_fallback", ["framework", "config"], "medium")
    assert made.segment["config"] == "ragged"
    on = made.steps((0,))
    assert set(on.recompiles[made.affected]) == {8}
    assert on.recompiles[~made.affected].max() <= 3


def test_paging_starts_where_memory_is_nearly_full(trial) -> None:
    made = trial("vram_sysmem_spill", ["driver", "config"], "medium")
    on, off = made.steps((0,)), made.steps(())
    total = made.later.world.of_card("memory_gib") << 30
    assert made.segment["config"] == "wide"
    assert (off.memory_used_bytes[made.affected] / total[made.affected]).mean() == pytest.approx(
        0.94, abs=0.003
    )
    assert (on.memory_used_bytes[made.affected] / total[made.affected]).max() < 0.905
    assert (on.received_bytes > off.received_bytes).tolist() == made.affected.tolist()


def test_a_fault_that_needs_a_configuration_says_so() -> None:
    injected = Injected(cause="vram_sysmem_spill", columns=("driver",), grade="mild")
    with pytest.raises(ValueError, match="must name its config"):
        edits(injected, {"driver": "1"}, 1)


def test_a_fault_that_cannot_act_is_refused(trial) -> None:
    made = trial("recompile_limit_eager_fallback", ["framework", "config"])
    bare = made.periods.group.model_copy(update={"configs": ("base",)})
    other = Trial(type(made.periods)(bare, 1), made.arm)
    with pytest.raises(ValueError, match="no config of this fleet"):
        other.seconds()


def test_every_arm_of_the_matrix_names_a_known_fault() -> None:
    faults = [arm.fault for group in read_matrix() for arm in group.arms if arm.fault]
    assert {fault.cause for fault in faults} == set(FLEET_FAULTS)
    assert {len(fault.columns) for fault in faults} == {1, 2}
