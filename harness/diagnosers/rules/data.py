"""Rules on data: what makes batches late, and checkpoints."""

from __future__ import annotations

from harness.diagnosers.rules.rule import Rule

DATA: tuple[Rule, ...] = (
    Rule(
        "too_few_loader_workers",
        lambda f: f["workers.max"] < 0.9,
        cites=("workers.max",),
        rivals=(("dataloader_cpu_bound", "a batch costs a worker what it did"),),
    ),
    Rule(
        "worker_respawn_each_epoch",
        lambda f: f["worker_processes.median"] > 1.8,
        cites=("worker_processes.median",),
        rivals=(("dataloader_cpu_bound", "a batch costs a worker what it did"),),
    ),
    Rule(
        "random_access_index_mapping",
        lambda f: f["read_bytes.median"] > 2,
        cites=("read_bytes.median", "read.median"),
        rivals=(("storage_fetch_stall", "storage is as fast: more bytes are read for a batch"),),
    ),
    Rule(
        "slow_loader_worker",
        lambda f: f["uneven_workers.max"] > 0.5,
        cites=("uneven_workers.max",),
        scope="worker",
        place="uneven_workers",
        rivals=(("dataloader_cpu_bound", "other workers of the rank are as fast as before"),),
    ),
    Rule(
        "data_straggler_rank",
        lambda f: (
            f["data_wait.max"] > 0.02
            and f["fetch_mean.max"] > 1.2
            and f["fetch_least.median"] < 1.3
        ),
        cites=("fetch_mean.max", "data_wait.max"),
        rivals=(("slow_loader_worker", "all workers of the rank are slow at times"),),
        sure=0.7,
    ),
    Rule(
        "storage_fetch_stall",
        lambda f: (
            f["read.median"] > 2 and f["read_speed.median"] < 0.6 and f["read_share.now"] > 0.4
        ),
        cites=("read.median", "data_wait.median"),
        rivals=(("dataloader_cpu_bound", "workers wait in reads"),),
    ),
    Rule(
        "pageable_h2d_copy",
        lambda f: f["job.pageable_copies.growth"] > 1.5,
        cites=("job.pageable_copies.growth",),
        rivals=(("pcie_downgrade", "copies come from pageable memory, over as many lanes"),),
    ),
    Rule(
        "dataloader_cpu_bound",
        lambda f: f["decode.min"] > 1.3,
        cites=("decode.median",),
        rivals=(("storage_fetch_stall", "the time is not in reads"),),
    ),
    Rule(
        "async_checkpoint_interference",
        lambda f: f["said.saves_beside.new"] > 0,
        cites=("written.max",),
        scope="rank",
        place="written",
        rivals=(("sync_checkpoint", "ranks go on while it is written"),),
    ),
    Rule(
        "sync_checkpoint",
        lambda f: f["checkpoint.max"] > 0.02,
        cites=("checkpoint.max",),
        scope="rank",
        place="checkpoint",
        rivals=(("blocking_metric_io", "the time is in saving"),),
    ),
)  # fmt: skip
