"""The `jobs` table: how jobs ended, what they reported, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from injectors.fleet.period import Period
from injectors.fleet.steps import Steps
from injectors.fleet.world import World
from injectors.sim import noise
from injectors.sim.noise import Ints

FAILED_PERCENT = 2
# What only a job that ends well reports of itself.
AT_THE_END = (
    "throughput", "step_ns", "compute_ns", "communication_ns", "copy_ns", "data_wait_ns",
    "loader_read_ns", "loader_cpu_ns", "recompiles", "tensor_active_percent",
)  # fmt: skip


@dataclass(frozen=True)
class Ends:
    """How each job ended: steps done, time taken, and whether it failed or was killed."""

    steps: Ints
    duration_ns: Ints
    failed: NDArray[np.bool_]
    killed: NDArray[np.bool_]

    @property
    def reported(self) -> NDArray[np.bool_]:
        """Whether the job ended well."""
        return ~(self.failed | self.killed)


def jobs_table(period: Period, steps: Steps, withheld: Sequence[str] = ()) -> pd.DataFrame:
    """Write the table of a period's jobs; the columns `withheld` hold nothing."""
    world, ended = period.world, ends(period, steps)
    frame = pd.DataFrame({**_named(world), **_counted(world, steps, ended), **_measured(steps)})
    frame.loc[frame["gpu_serial"] == "", "gpu_serial"] = None
    frame["throughput"] = _throughput(world, steps.step_ns)
    for column in AT_THE_END:
        frame[column] = _nullable(frame[column]).mask(~ended.reported)
    for column in withheld:
        frame[column] = _nullable(frame[column]).mask(np.ones(len(frame), dtype=bool))
    return frame.sort_values("job", ignore_index=True)


def ends(period: Period, steps: Steps) -> Ends:
    """Let each job do its steps until they are done, it fails, or the time it asked for is up."""
    world, keys = period.world, period.world.jobs.keys
    planned = np.maximum(world.jobs.budget_ns // period.expected_ns, 20)
    # The mean step is a little above the median one.
    mean_ns = steps.step_ns + noise.scale_q16(
        steps.step_ns // 250, noise.exponential_q16(noise.extend(keys, "mean"))
    )
    failing = noise.below(noise.extend(keys, "fails"), 100) < FAILED_PERCENT
    part = noise.uniform_q16(noise.extend(keys, "fails at"))
    wanted = np.where(failing, np.maximum(noise.scale_q16(planned, part), 1), planned)
    killed = wanted * mean_ns > world.requested_ns
    done = np.where(killed, np.maximum(world.requested_ns // mean_ns, 1), wanted)
    length = np.where(killed, world.requested_ns, done * mean_ns)
    return Ends(done, length, failing & ~killed, killed)


def _named(world: World) -> dict[str, object]:
    order = np.argsort(world.start_ns, kind="stable")
    return {"job": np.argsort(order, kind="stable"), **world.columns}


def _counted(world: World, steps: Steps, ended: Ends) -> dict[str, object]:
    state = np.where(ended.failed, "failed", np.where(ended.killed, "killed", "completed"))
    rate = steps.received_bytes * 1000 // (steps.step_ns // 1_000_000 + 1)
    return {
        "start_ns": world.start_ns,
        "duration_ns": ended.duration_ns,
        "requested_ns": world.requested_ns,
        "state": state.astype(object),
        "steps": ended.steps,
        "batch_size": world.batch,
        "input_size": world.of_model("sizes"),
        "pcie_rx_bytes_per_s": rate,
        "memory_used_bytes": steps.memory_used_bytes,
        "memory_total_bytes": world.of_card("memory_gib") << 30,
        "sm_clock_mhz": noise.scale_q16(world.of_card("max_clock_mhz"), steps.clocks.clock_q16),
        "power_w": _mean_power_w(world, steps),
    }


def _measured(steps: Steps) -> dict[str, object]:
    return {
        "step_ns": steps.step_ns,
        "compute_ns": steps.compute_ns,
        "communication_ns": steps.communication_ns,
        "copy_ns": steps.copy_ns,
        "data_wait_ns": steps.data_wait_ns,
        "loader_read_ns": steps.read_ns,
        "loader_cpu_ns": steps.decode_ns,
        "recompiles": steps.recompiles,
        "tensor_active_percent": (steps.tensor_ns * 1000 // steps.step_ns) / 10,
        "temperature_c": steps.clocks.temperature_c,
        "power_limit_w": steps.limit_w.astype(np.float64),
        "event_reasons": steps.clocks.reasons,
        "pcie_width": steps.pcie_width,
    }


def _mean_power_w(world: World, steps: Steps) -> NDArray[np.float64]:
    """Power over the whole step: at idle while it waits."""
    idle = world.of_card("idle_w")
    extra = (steps.clocks.power_w - idle) * 10 * (steps.compute_ns // 1000)
    return np.asarray((idle * 10 + extra // (steps.step_ns // 1000)) / 10)


def _throughput(world: World, step_ns: Ints) -> NDArray[np.float64]:
    each = np.where(world.of_model("counts_tokens") == 1, world.of_model("sizes"), 1)
    return np.asarray(world.batch * each * 1_000_000_000 / step_ns)


def _nullable(column: pd.Series) -> pd.Series:
    return column.astype("Int64") if column.dtype.kind == "i" else column
