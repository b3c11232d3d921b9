"""What a group's cases may lack, and which causes then cannot be told apart.

phases: framework and NCCL came in the same jobs, all of several ranks, and nothing tells computing
from communicating. clock_limits: a GPU that was exchanged is slow, and neither its power limit
nor its power was recorded; less power and a chip that needs more give the same clocks.
loader_split: loader image and storage pool came together, and the loader does not say whether it
reads or computes (a tie-break of the taxonomy). tensor_use: a version is slow in one
configuration in float32, and nothing tells whether its products left the tensor cores.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Withheld:
    """Columns of `jobs` that hold nothing, and the causes that remain if one of them is there."""

    columns: tuple[str, ...]
    candidates: tuple[str, ...]

    @property
    def signals(self) -> tuple[str, ...]:
        """The columns as signals."""
        return tuple(f"jobs.{column}" for column in self.columns)


WITHHELD: dict[str, Withheld] = {
    "nothing": Withheld((), ()),
    "phases": Withheld(
        ("compute_ns", "communication_ns", "tensor_active_percent", "power_w"),
        ("kernel_regression", "nccl_tuning_regression"),
    ),
    "clock_limits": Withheld(
        ("power_w", "power_limit_w", "event_reasons", "temperature_c"),
        ("power_cap", "gpu_silicon_variability"),
    ),
    "loader_split": Withheld(
        ("loader_read_ns", "loader_cpu_ns"), ("storage_fetch_stall", "dataloader_cpu_bound")
    ),
    "tensor_use": Withheld(("tensor_active_percent",), ("kernel_regression", "precision_fallback")),
}
