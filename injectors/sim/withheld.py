"""What the diagnoser of a simulated case does not get, by the patterns of the taxonomy.

Each pattern is a reason why real recordings stay undecidable (`insufficient` in
cases/taxonomy.yaml). It takes away what the taxonomy names, and whatever else would tell its
candidates apart: simulated signals are more complete than those of the jobs that the reasons came
from. What is left says that the job is slow and rules out other causes. Patterns act alike on a
case and its reference run, and never look at the label.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from cases.bundle import RunData
from cases.errors import ScenarioError
from injectors import public
from injectors.faults import FAULTS
from injectors.sim.left_over import (
    Columns,
    keep,
    of_rank,
    one_sample,
    overall,
    shift_hosts,
    without,
    without_progress,
    without_variables,
)

Pattern = Callable[[RunData], RunData]
COLLECTIVE_TIMES: Columns = {"collectives": ("created_ns", "started_ns", "completed_ns")}
GPU_STATE: Columns = {
    "gpu": ("sm_clock_mhz", "temperature_c", "event_reasons", "power_w", "power_limit_w")
}
SHARES = ("utilization_percent", "memory_utilization_percent")
GPU_USE: Columns = {
    "gpu": (
        "processes",
        "memory_used_bytes",
        *SHARES,
        "pcie_tx_bytes_per_s",
        "pcie_rx_bytes_per_s",
    )
}
GPU_TRAFFIC: Columns = {
    "gpu": ("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s", "nvlink_tx_bytes", "nvlink_rx_bytes")
}


def _whole(run: RunData, tables: Collection[str]) -> RunData:
    """Leave some tables, of the steps how long they took on average, of events that they were."""
    left = without_progress(overall(keep(run, ("steps", *tables))))
    return without(left, {"runtime": ("time_ns", "duration_ns")})


def all_but_progress(run: RunData) -> RunData:
    """How fast rank 0 went in all: how that changes would tell pauses from slow kernels."""
    return of_rank(_whole(run, ()), 0)


def step_walls_only(run: RunData) -> RunData:
    """Walls alone: phases, arrivals, devices and workers would each name one of the candidates."""
    return without(_whole(run, ("collectives", "logs")), COLLECTIVE_TIMES)


def single_rank_trace(run: RunData) -> RunData:
    """One rank. Its trace has to go too: a late peer shows in the first bucket, a link in all."""
    return of_rank(step_walls_only(run), 0)


def collectives_without_token_counts(run: RunData) -> RunData:
    """No loads. Bytes would name the hot rank, times the operation, the log the transport."""
    gone = {"collectives": (*COLLECTIVE_TIMES["collectives"], "bytes")}
    return without(_whole(run, ("collectives",)), gone)


def version_drop_without_counters(run: RunData) -> RunData:
    """No network. The trace names the algorithm; times of collectives vary only with loss.

    Threads that serve the network take cores from workers, and power follows transfers.
    """
    left = one_sample(_whole(run, ("collectives", "gpu", "runtime", "logs")), "gpu")
    for gone in (COLLECTIVE_TIMES, GPU_TRAFFIC, {"gpu": ("power_w",)}):
        left = without(left, gone)
    return without_variables(left)


def coarse_sampling(run: RunData) -> RunData:
    """One sample of each device and interface, of unknown time; no device's state is in it.

    Arrivals and phases by rank would tell a host from a device, and so would all that hosts do
    and what a busy host's processes meet.
    """
    left = _whole(run, ("collectives", "gpu", "network", "logs"))
    for name in ("gpu", "network"):
        left = one_sample(left, name)
    for gone in (COLLECTIVE_TIMES, GPU_STATE, GPU_USE):
        left = without(left, gone)
    return left


def coarse_microbatch_timers(run: RunData) -> RunData:
    """Walls of whole steps; arrivals, loads and devices would each name one of the candidates.

    So would processes, which spin while they wait, queues that empty while nobody sends, and
    workers, which fetch whenever a step begins.
    """
    tables = ("collectives", "runtime", "logs")
    left = without(_whole(run, tables), {**COLLECTIVE_TIMES, "runtime": ("value",)})
    return without_variables(left)


def unaligned_clocks(run: RunData) -> RunData:
    """Clocks of hosts are seconds apart.

    Lengths on one host's clock would still tell waiting from transferring, and the hosts' own
    samples where it is waited for.
    """
    left = shift_hosts(_whole(run, ("collectives", "processes", "logs")))
    return without(keep(left, ("steps", "collectives", "logs")), COLLECTIVE_TIMES)


def congestion_mark_only(run: RunData) -> RunData:
    """The marks alone: what interfaces carried, even in all, would tell a busy path from a port."""
    return without(_whole(run, ("collectives", "runtime", "logs")), COLLECTIVE_TIMES)


def unlogged_preemptions(run: RunData) -> RunData:
    """Walls alone: batches and queues would tell, and so does when clients ask again."""
    return without(_whole(run, ()), {"steps": ("tokens",)})


def no_baseline_single_gpu(run: RunData) -> RunData:
    """All but the device's own state: its clock, power, temperature and the reasons for them.

    Of the steps the mean: heat and limits come and go, a slow device is always slow. Arithmetic
    waits for the clock and memory does not, so the shares of both would tell by how much it fell.
    """
    return without(overall(run), {"gpu": (*GPU_STATE["gpu"], *SHARES)})


def everything_changed_together(run: RunData) -> RunData:
    """Walls, loads and counts: kernels, transports and their times are what a change shows in.

    Workers fetch when a step lets them, which is another time where ranks wait in collectives.
    """
    return without(_whole(run, ("collectives", "runtime")), COLLECTIVE_TIMES)


PATTERNS: Mapping[str, Pattern] = {
    "nothing": lambda run: run,
    "all_but_progress": all_but_progress,
    "all_but_steps": lambda run: public.withhold(run, "all_but_steps"),
    "step_walls_only": step_walls_only,
    "single_rank_trace": single_rank_trace,
    "collectives_without_token_counts": collectives_without_token_counts,
    "version_drop_without_counters": version_drop_without_counters,
    "coarse_sampling": coarse_sampling,
    "coarse_microbatch_timers": coarse_microbatch_timers,
    "unaligned_clocks": unaligned_clocks,
    "congestion_mark_only": congestion_mark_only,
    "unlogged_preemptions": unlogged_preemptions,
    "no_baseline_single_gpu": no_baseline_single_gpu,
    "everything_changed_together": everything_changed_together,
}
# The causes that each pattern leaves alike, of those that the taxonomy has; None: all that fit the
# job. nccl_transport_fallback is in none: it costs 2 to 10 times the step, which no other cause of
# its patterns does.
CANDIDATES: Mapping[str, tuple[str, ...] | None] = {
    "nothing": (),
    "all_but_progress": None,
    "all_but_steps": tuple(cause for cause, fault in FAULTS.items() if fault.backward_alone),
    "step_walls_only": ("slow_link", "kernel_regression", "data_straggler_rank"),
    "single_rank_trace": ("slow_link", "data_straggler_rank", "cpu_contention_colocated"),
    "collectives_without_token_counts": ("moe_expert_imbalance", "network_congestion"),
    "version_drop_without_counters": ("nccl_tuning_regression", "roce_flow_control_loss"),
    "coarse_sampling": ("thermal_throttle", "cpu_contention_colocated", "gpu_noisy_neighbor"),
    "coarse_microbatch_timers": (
        "thermal_throttle",
        "sequence_length_imbalance",
        "nccl_sm_contention",
    ),
    "unaligned_clocks": ("slow_link", "data_straggler_rank", "rank_extra_host_work"),
    "congestion_mark_only": ("network_congestion", "nic_degraded"),
    "unlogged_preemptions": (
        "kv_cache_preemption",
        "decode_batch_kv_limited",
        "kernel_regression",
    ),
    "no_baseline_single_gpu": ("gpu_silicon_variability", "thermal_throttle", "power_cap"),
    "everything_changed_together": ("kernel_regression", "nccl_tuning_regression"),
}


def withhold(run: RunData, what: str) -> RunData:
    """Leave of a recording, of the case or of its reference run, what a pattern leaves.

    Raises:
        ScenarioError: there is no such pattern.
    """
    if what not in PATTERNS:
        raise ScenarioError(f"must be one of {sorted(PATTERNS)}", where="withhold", found=what)
    return PATTERNS[what](run)
