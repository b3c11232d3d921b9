"""The signal tables: their columns, types, units and row order.

A table that is absent is normal and stated in case.json. Within a table every column is
present; a value that could not be measured is null. Times are nanoseconds since the case's
start.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from cases.errors import BundleError

TYPES: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "flag": pa.bool_(),
}


@dataclass(frozen=True)
class Table:
    """One table: `columns` maps a name to (type, meaning), `order` is the row order.

    `growth` names the columns that tell how much a counter grew, which are never negative.
    """

    about: str
    columns: dict[str, tuple[str, str]]
    order: tuple[str, ...]
    growth: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The table's Arrow schema."""
        return pa.schema([(name, TYPES[kind]) for name, (kind, _) in self.columns.items()])


RANK = ("int", "rank of the process")
TIME = ("int", "when the sample was taken, ns")

TABLES: dict[str, Table] = {
    "steps": Table(
        "One row per rank and step, timed by the job itself.",
        {
            "rank": RANK,
            "step": ("int", "step number; the last one of a row that averages several"),
            "span": ("int", "steps that the row averages over; 1 in a full recording"),
            "start_ns": ("int", "start of the step"),
            "duration_ns": ("int", "wall time of the step (mean over the span)"),
            "data_wait_ns": ("int", "waiting for the next batch"),
            "forward_ns": ("int", "forward pass and loss"),
            "backward_ns": ("int", "backward pass, gradient collectives included"),
            "optimizer_ns": ("int", "optimizer step"),
            "checkpoint_ns": ("int", "writing a checkpoint, 0 in most steps"),
            "tokens": ("int", "tokens (or samples) processed"),
        },
        ("rank", "step"),
    ),
    "collectives": Table(
        "One row per rank and collective, with the flight recorder's fields.",
        {
            "rank": RANK,
            "process_group": ("text", "name of the process group"),
            "seq": ("int", "sequence number within the group"),
            "op": ("text", "all_reduce, all_gather, ..."),
            "bytes": ("int", "payload of this rank"),
            "dtype": ("text", "element type"),
            "created_ns": ("int", "when the rank asked for it"),
            "started_ns": ("int", "when it began to run; null where the backend does not tell"),
            "completed_ns": ("int", "when it was done on this rank"),
            "state": ("text", "completed, scheduled or started"),
        },
        ("rank", "process_group", "seq"),
    ),
    "gpu": Table(
        "NVML samples, one row per device and sample; utilisation in percent.",
        {
            "rank": RANK,
            "time_ns": TIME,
            "utilization_percent": ("float", "share of time with any kernel running"),
            "memory_utilization_percent": ("float", "share of time with memory traffic"),
            "memory_used_bytes": ("int", "device memory in use"),
            "memory_total_bytes": ("int", "device memory in all"),
            "power_w": ("float", "board power (a running average)"),
            "power_limit_w": ("float", "enforced power limit"),
            "sm_clock_mhz": ("int", "SM clock"),
            "memory_clock_mhz": ("int", "memory clock"),
            "temperature_c": ("int", "GPU temperature"),
            "event_reasons": ("int", "bit mask of clock event reasons"),
            "pcie_tx_bytes_per_s": ("int", "PCIe bytes sent per second"),
            "pcie_rx_bytes_per_s": ("int", "PCIe bytes received per second"),
            "pcie_generation": ("int", "current link generation"),
            "pcie_width": ("int", "current link width"),
            "nvlink_tx_bytes": ("int", "NVLink bytes sent since the start"),
            "nvlink_rx_bytes": ("int", "NVLink bytes received since the start"),
            "processes": ("int", "processes that use the device"),
        },
        ("rank", "time_ns"),
        ("nvlink_tx_bytes", "nvlink_rx_bytes"),
    ),
    "host": Table(
        "Host samples; counters are the growth since the sample before.",
        {
            "host": ("text", "host name of the topology"),
            "time_ns": TIME,
            "cores": ("int", "usable cores"),
            "cpu_busy_ns": ("int", "busy CPU time, all cores"),
            "cpu_system_ns": ("int", "part of it in the kernel"),
            "cpu_iowait_ns": ("int", "CPU time idle with I/O pending"),
            "cpu_steal_ns": ("int", "CPU time taken by the hypervisor"),
            "run_queue": ("int", "runnable threads"),
            "psi_cpu_some_ns": ("int", "time in which some task waited for a CPU"),
            "psi_io_some_ns": ("int", "time in which some task waited for I/O"),
            "psi_memory_some_ns": ("int", "time in which some task waited for memory"),
            "memory_available_bytes": ("int", "memory available"),
            "memory_bandwidth_bytes_per_s": ("int", "memory traffic, where counters tell"),
            "disk_read_bytes": ("int", "bytes read from block devices"),
            "disk_write_bytes": ("int", "bytes written to block devices"),
            "cgroup_throttled_ns": ("int", "time that the quota held the job back"),
        },
        ("host", "time_ns"),
        (
            "cpu_busy_ns",
            "cpu_system_ns",
            "cpu_iowait_ns",
            "cpu_steal_ns",
            "psi_cpu_some_ns",
            "psi_io_some_ns",
            "psi_memory_some_ns",
            "disk_read_bytes",
            "disk_write_bytes",
            "cgroup_throttled_ns",
        ),
    ),
    "network": Table(
        "Samples of each rank's network interface; counters are the growth since the sample"
        " before, the send queue is a level.",
        {
            "rank": RANK,
            "time_ns": TIME,
            "tx_bytes": ("int", "bytes sent"),
            "rx_bytes": ("int", "bytes received"),
            "tx_dropped": ("int", "packets dropped before sending"),
            "retransmits": ("int", "TCP segments sent again"),
            "send_queue_bytes": ("int", "bytes that TCP holds unacknowledged or unsent"),
        },
        ("rank", "time_ns"),
        ("tx_bytes", "rx_bytes", "tx_dropped", "retransmits"),
    ),
    "processes": Table(
        "Samples of the processes that use the host; counters are the growth since the sample"
        " before; those of scheduling leave out threads that have ended since. `process` numbers"
        " are the case's own.",
        {
            "host": ("text", "host name of the topology"),
            "time_ns": TIME,
            "process": ("int", "number of the process within the case"),
            "role": ("text", "rank, loader_worker or other"),
            "rank": ("int", "rank that it belongs to; null for others"),
            "worker": ("int", "loader worker number; null for others"),
            "name": ("text", "command name"),
            "nice": ("int", "nice value"),
            "threads": ("int", "threads"),
            "affinity": ("int", "CPUs that it may run on"),
            "cpu_ns": ("int", "CPU time used"),
            "run_delay_ns": ("int", "time runnable but waiting for a CPU"),
            "voluntary_switches": ("int", "context switches by waiting"),
            "involuntary_switches": ("int", "context switches by preemption"),
            "read_bytes": ("int", "bytes read by system calls"),
            "write_bytes": ("int", "bytes written by system calls"),
            "rss_bytes": ("int", "resident memory"),
        },
        ("host", "process", "time_ns"),
        (
            "cpu_ns",
            "run_delay_ns",
            "voluntary_switches",
            "involuntary_switches",
            "read_bytes",
            "write_bytes",
        ),
    ),
    "loader": Table(
        "One row per batch that a data loader delivered.",
        {
            "rank": RANK,
            "worker": ("int", "worker number; -1 where the rank loads by itself"),
            "batch": ("int", "batch number in order of delivery"),
            "start_ns": ("int", "when the worker began the batch"),
            "fetch_ns": ("int", "wall time of reading and decoding it"),
            "read_ns": ("int", "part of it spent in reading storage"),
            "cpu_ns": ("int", "CPU time that the worker used for it"),
            "read_bytes": ("int", "bytes read"),
            "queue_depth": ("int", "batches ready when the rank asked; null where unknown"),
        },
        ("rank", "batch"),
    ),
    "runtime": Table(
        "Events of the runtime: garbage collections, recompilations, allocator retries, loads.",
        {
            "rank": RANK,
            "time_ns": TIME,
            "event": (
                "text",
                "gc, recompile, recompile_limit (functions left to the eager path, told at the"
                " start), allocator_retry, expert_tokens, embedding_rows, sequence_lengths,"
                " input_size",
            ),
            "duration_ns": ("int", "how long it took; null where it has no length"),
            "value": ("float", "the event's number (generation, tokens, ...)"),
            "detail": ("text", "reason or further words"),
        },
        ("rank", "time_ns", "event", "detail"),
    ),
    "logs": Table(
        "Lines that the job itself printed.",
        {
            "rank": RANK,
            "time_ns": TIME,
            "level": ("text", "INFO, WARNING or ERROR"),
            "message": ("text", "the line"),
        },
        ("rank", "time_ns", "message"),
    ),
    "requests": Table(
        "One row per inference request, after vLLM's metrics.",
        {
            "request": ("int", "request number in order of arrival"),
            "arrival_ns": ("int", "arrival"),
            "scheduled_ns": ("int", "first scheduled"),
            "first_token_ns": ("int", "first token out"),
            "finished_ns": ("int", "last token out"),
            "prompt_tokens": ("int", "tokens of the prompt"),
            "generation_tokens": ("int", "tokens generated"),
            "cached_tokens": ("int", "prompt tokens found in the prefix cache"),
            "preemptions": ("int", "times it was preempted"),
            "request_class": ("text", "class of the request"),
            "tenant": ("int", "application that sent it, as the gateway knows it; null: none"),
            "engine": ("text", "engine that served it"),
        },
        ("request",),
    ),
    "engine": Table(
        "One row per engine step, after vLLM's metrics.",
        {
            "engine": ("text", "engine name"),
            "step": ("int", "step number"),
            "start_ns": ("int", "start of the step"),
            "duration_ns": ("int", "wall time of the step"),
            "scheduler_ns": ("int", "host time before the model ran"),
            "num_requests_running": ("int", "requests in the batch"),
            "num_requests_waiting": ("int", "requests in the queue"),
            "kv_cache_usage": ("float", "share of KV blocks in use"),
            "prefill_tokens": ("int", "prompt tokens in this step"),
            "decode_tokens": ("int", "decode tokens in this step"),
            "num_preemptions": ("int", "preemptions in this step"),
            "prefix_cache_queries": ("int", "prompt tokens looked up"),
            "prefix_cache_hits": ("int", "prompt tokens found"),
            "draft_tokens": ("int", "tokens drafted"),
            "accepted_tokens": ("int", "drafted tokens accepted"),
        },
        ("engine", "step"),
    ),
    "jobs": Table(
        "Fleet cases: one row per job. A job runs on one machine. What the job itself reports it"
        " reports at its end, so that the columns from throughput to tensor_active_percent are null"
        " where it failed or was killed; duration_ns / steps is its mean step all the same. Clock,"
        " power and temperature are of the rank whose GPU computes longest.",
        {
            "job": ("int", "job number, in order of start"),
            "start_ns": ("int", "start of the job; the period starts at midnight"),
            "duration_ns": ("int", "length of the job"),
            "requested_ns": ("int", "time that the job asked for, after which it is killed"),
            "state": ("text", "completed, failed or killed"),
            "steps": ("int", "steps that were done"),
            "machine": ("text", "machine"),
            "gpu_serial": ("text", "GPU serial number; null where the job has several ranks"),
            "gpu_model": ("text", "GPU model"),
            "driver": ("text", "driver version"),
            "nccl": ("text", "NCCL version"),
            "framework": ("text", "framework version"),
            "image": ("text", "container image of the data loader"),
            "storage": ("text", "storage pool that the samples come from"),
            "config": ("text", "configuration name"),
            "model": ("text", "model trained or served"),
            "ranks": ("int", "ranks of the job, one GPU each"),
            "batch_size": ("int", "samples of a step and rank"),
            "input_size": ("int", "tokens of a sequence, or pixels of an image's edge"),
            "throughput": ("float", "samples or tokens per second and rank"),
            "step_ns": ("int", "median step time"),
            "compute_ns": ("int", "part of it in compute kernels"),
            "communication_ns": ("int", "part of it in collectives that nothing hides"),
            "copy_ns": ("int", "part of it in copies between host and device"),
            "data_wait_ns": ("int", "part of it waiting for the next batch"),
            "loader_read_ns": ("int", "time a loader worker reads storage for a batch"),
            "loader_cpu_ns": ("int", "CPU time a loader worker takes for a batch"),
            "recompiles": ("int", "times that the compiler ran anew after the first step"),
            "tensor_active_percent": ("float", "share of time with the tensor cores active"),
            "sm_clock_mhz": ("int", "mean SM clock"),
            "temperature_c": ("int", "mean GPU temperature"),
            "power_w": ("float", "mean board power"),
            "power_limit_w": ("float", "enforced power limit"),
            "event_reasons": ("int", "bit mask of clock event reasons seen under load"),
            "pcie_width": ("int", "least link width of its GPUs under load"),
            "pcie_rx_bytes_per_s": ("int", "PCIe bytes received per second"),
            "memory_used_bytes": ("int", "most device memory in use"),
            "memory_total_bytes": ("int", "device memory in all"),
        },
        ("job",),
    ),
}
TRACE_SIGNAL = "trace_events"
SIGNALS: tuple[str, ...] = (*TABLES, TRACE_SIGNAL)


def to_arrow(name: str, frame: pd.DataFrame) -> pa.Table:
    """Give `frame` the declared columns, types and row order of table `name`.

    Columns that the frame lacks become null. Raises BundleError for columns that are not
    declared or values that do not fit their type.
    """
    table = TABLES[name]
    unknown = sorted(set(frame.columns) - set(table.columns))
    if unknown:
        raise BundleError(f"must have columns {list(table.columns)}", where=name, found=unknown)
    ordered = frame.reset_index(drop=True).reindex(columns=list(table.columns))
    ordered = ordered.sort_values(list(table.order), kind="stable")
    try:
        return pa.Table.from_pandas(ordered, schema=table.schema, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BundleError(f"must fit the declared types ({error})", where=name) from None
