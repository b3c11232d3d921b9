"""What is measured of a rank: a table of names, units and formulas.

Every metric is one number for each rank of a run. How it changed from the reference run to this
one depends on its unit:

step    nanoseconds in a step; the change is (now - then) / the reference's mean step
ratio   any scale; the change is now / then
level   a share or a count; the change is now - then
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["step", "ratio", "level"]


@dataclass(frozen=True)
class Metric:
    """One metric: its unit, its formula in words, and the table it is read from."""

    unit: Unit
    formula: str
    table: str


METRICS: dict[str, Metric] = {
    "duration": Metric("step", "mean of duration_ns, step 0 left out", "steps"),
    "data_wait": Metric("step", "mean of data_wait_ns", "steps"),
    "forward": Metric("step", "mean of forward_ns", "steps"),
    "backward": Metric("step", "mean of backward_ns", "steps"),
    "optimizer": Metric("step", "mean of optimizer_ns", "steps"),
    "checkpoint": Metric("step", "mean of checkpoint_ns", "steps"),
    "computing": Metric("step", "forward and backward together", "steps"),
    "gap": Metric("step", "duration less all parts above: what no phase holds", "steps"),
    "spike": Metric("step", "mean less 0.4 quantile of duration_ns: what few steps lose", "steps"),
    "forward_spike": Metric("step", "the same of forward_ns", "steps"),
    "gap_spike": Metric("step", "the same of the gap", "steps"),
    "tokens": Metric("ratio", "tokens of a step", "steps"),
    "joined": Metric("step", "sum of completed_ns - started_ns over steps", "collectives"),
    "own": Metric("step", "duration less joined: time in which a rank is in no collective", "both"),
    "transfer": Metric(
        "step", "calls of a kind in a step times the least completed_ns - started_ns", "collectives"
    ),
    "held": Metric("step", "joined less transfer: waiting for the last member", "collectives"),
    "asked_late": Metric(
        "step", "mean of created_ns less the median rank's of the same call", "collectives"
    ),
    "asked_late_least": Metric("step", "0.2 quantile of the same", "collectives"),
    "calls": Metric("ratio", "collectives in a step", "collectives"),
    "small_calls": Metric("level", "collectives of under 4 KiB in a step", "collectives"),
    "bytes": Metric("ratio", "bytes of collectives in a step", "collectives"),
    "clock": Metric("ratio", "mean of sm_clock_mhz", "gpu"),
    "power": Metric("ratio", "mean of power_w", "gpu"),
    "power_limit": Metric("ratio", "greatest power_limit_w", "gpu"),
    "temperature": Metric("level", "mean of temperature_c", "gpu"),
    "hot": Metric("level", "share of samples with a thermal bit (0x60) in event_reasons", "gpu"),
    "capped": Metric("level", "share of samples with the power bit (0x4)", "gpu"),
    "users": Metric("level", "median of processes", "gpu"),
    "utilization": Metric("level", "mean of utilization_percent", "gpu"),
    "memory_used": Metric("level", "greatest memory_used_bytes / memory_total_bytes", "gpu"),
    "pcie_lanes": Metric("ratio", "greatest pcie_generation times greatest pcie_width", "gpu"),
    "pcie_rx": Metric("ratio", "mean of pcie_rx_bytes_per_s times the mean step", "gpu"),
    "nvlink": Metric("ratio", "growth of nvlink_tx_bytes in a step", "gpu"),
    "cores": Metric("level", "CPU time of the rank's process over wall time", "processes"),
    "delay": Metric("level", "run_delay_ns / cpu_ns of the rank's process", "processes"),
    "asleep": Metric("step", "step less CPU time and run delay of the rank in it", "processes"),
    "threads": Metric("level", "most threads of the rank's process", "processes"),
    "affinity": Metric("ratio", "least affinity of the rank's process", "processes"),
    "preempted": Metric("ratio", "involuntary switches of the rank in a second", "processes"),
    "written": Metric("level", "MB that the rank writes in a step", "processes"),
    "worker_affinity": Metric("ratio", "least affinity of its loader workers", "processes"),
    "worker_delay": Metric("level", "run_delay_ns / cpu_ns of its loader workers", "processes"),
    "worker_threads": Metric("level", "most threads of a loader worker", "processes"),
    "worker_processes": Metric("ratio", "different processes of loader workers", "processes"),
    "foreign": Metric(
        "level", "cores of others (nice < 10) on its host that read little", "processes"
    ),
    "polling": Metric("level", "the same of those that read much", "processes"),
    "nice_foreign": Metric("level", "cores of others (nice >= 10) on its host", "processes"),
    "throttled": Metric("level", "cgroup_throttled_ns over wall time on its host", "host"),
    "cpu_pressure": Metric("level", "psi_cpu_some_ns over wall time", "host"),
    "io_pressure": Metric("level", "psi_io_some_ns over wall time", "host"),
    "memory_moved": Metric("level", "memory_bandwidth_bytes_per_s in GB/s", "host"),
    "stolen": Metric("level", "cpu_steal_ns over wall time", "host"),
    "resent": Metric("level", "1448 * retransmits / tx_bytes", "network"),
    "dropped": Metric("level", "4096 * tx_dropped / tx_bytes", "network"),
    "queue": Metric("ratio", "mean of send_queue_bytes where there are any", "network"),
    "queue_all": Metric("ratio", "mean of send_queue_bytes", "network"),
    "sent": Metric("ratio", "tx_bytes in a step", "network"),
    "fetch": Metric("ratio", "median of fetch_ns", "loader"),
    "fetch_least": Metric("ratio", "0.2 quantile of fetch_ns", "loader"),
    "fetch_mean": Metric("ratio", "mean of fetch_ns", "loader"),
    "read": Metric("ratio", "mean of read_ns", "loader"),
    "read_share": Metric("level", "read_ns / fetch_ns", "loader"),
    "decode": Metric("ratio", "0.25 quantile of cpu_ns", "loader"),
    "decode_wall": Metric("ratio", "0.25 quantile of fetch_ns - read_ns", "loader"),
    "stalled": Metric("ratio", "mean of fetch_ns - read_ns over mean of cpu_ns", "loader"),
    "read_bytes": Metric("ratio", "mean of read_bytes", "loader"),
    "read_speed": Metric("ratio", "read_bytes / read_ns", "loader"),
    "workers": Metric("ratio", "different workers that deliver", "loader"),
    "uneven_workers": Metric(
        "level", "greatest over least of the workers' 0.2 quantile of fetch_ns", "loader"
    ),
    "slowest_batches": Metric(
        "level", "share of batches at which its fetch is the longest and 1.3 times the median",
        "loader",
    ),
    "queued_batches": Metric("level", "mean of queue_depth", "loader"),
    "collected": Metric("step", "duration_ns of gc events in a step", "runtime"),
    "recompiles": Metric("level", "recompile events in a step", "runtime"),
    "recompiled": Metric("step", "duration_ns of recompile events in a step", "runtime"),
    "retries": Metric("level", "allocator_retry events in a step", "runtime"),
    "retried": Metric("step", "duration_ns of allocator_retry events in a step", "runtime"),
    "expert_tokens": Metric("ratio", "mean value of expert_tokens", "runtime"),
    "embedding_rows": Metric("ratio", "mean value of embedding_rows", "runtime"),
    "expert_share": Metric("level", "expert_tokens over the mean of all ranks", "runtime"),
    "embedding_share": Metric("level", "embedding_rows over the mean of all ranks", "runtime"),
    "length_share": Metric("level", "length_squares over the mean of all ranks", "runtime"),
    "length_sum": Metric("ratio", "mean value of sequence_lengths, detail sum", "runtime"),
    "length_squares": Metric("ratio", "mean value of sequence_lengths, sum of squares", "runtime"),
    "length_spread": Metric(
        "level", "standard deviation over mean of sequence_lengths' sums of squares", "runtime"
    ),
    "padded": Metric("ratio", "tokens of a step over its sequence_lengths' sum", "runtime"),
}  # fmt: skip
