"""Witnesses of causes in data loading and checkpoints: cause -> (query, what it says)."""

from __future__ import annotations

from injectors.sim.witnesses.slower import all_slower

WAITS_MORE = """
    (SELECT avg(data_wait_ns) FROM steps)
    > (SELECT avg(data_wait_ns) + 0.03 * avg(duration_ns) FROM reference.steps)
"""

# What takes cores or memory traffic from the workers makes them use more CPU for a batch, too.
FOREIGN_CORES = """
    SELECT max(cpu / length) AS cores FROM (
        SELECT sum(cpu_ns) FILTER (role = 'other') AS cpu,
               max(time_ns) - min(time_ns) AS length
        FROM {schema}processes GROUP BY host)
"""

DATALOADER_CPU_BOUND = f"""
    WITH now AS (SELECT rank, quantile_cont(cpu_ns, 0.25) AS cpu,
                        quantile_cont(fetch_ns - read_ns, 0.25) AS decoding
                 FROM loader GROUP BY rank),
         then_ AS (SELECT median(cpu_ns) AS cpu, median(fetch_ns - read_ns) AS decoding
                   FROM reference.loader)
    SELECT (SELECT min(now.cpu) > 1.4 * min(then_.cpu)
                   AND min(now.decoding) > 1.4 * min(then_.decoding) FROM now, then_)
       AND (SELECT sum(read_ns) < 0.5 * sum(fetch_ns) FROM loader)
       AND ({FOREIGN_CORES.format(schema="")})
           < ({FOREIGN_CORES.format(schema="reference.")}) + 0.7
       AND (SELECT avg(threads) FROM processes WHERE role = 'loader_worker')
           < 1.5 * (SELECT avg(threads) FROM reference.processes WHERE role = 'loader_worker')
       AND {WAITS_MORE}
"""

# Of every batch number the rank that is slowest at it; a fixed one, or a new one each time, is
# no wandering straggler.
DATA_STRAGGLER_RANK = """
    WITH late AS (SELECT batch, arg_max(rank, fetch_ns) AS rank,
                         max(fetch_ns) > 1.3 * median(fetch_ns) AS wide
                  FROM loader GROUP BY batch),
         turns AS (SELECT rank, lag(rank) OVER (ORDER BY batch) AS before FROM late WHERE wide),
         waits AS (SELECT max(data_wait_ns) - min(data_wait_ns) AS apart FROM steps GROUP BY step),
         waited AS (SELECT max(data_wait_ns) - min(data_wait_ns) AS apart
                    FROM reference.steps GROUP BY step)
    SELECT (SELECT avg(wide::INT) > 0.6 FROM late)
       AND (SELECT count(DISTINCT rank) > 1 AND avg((rank <> before)::INT) < 0.35 FROM turns)
       AND (SELECT quantile_cont(fetch_ns, 0.25) FROM loader)
           < 1.4 * (SELECT median(fetch_ns) FROM reference.loader)
       AND (SELECT avg(apart) FROM waits)
           > (SELECT avg(apart) FROM waited) + 0.04 * (SELECT avg(duration_ns) FROM steps)
"""

SLOW_LOADER_WORKER = f"""
    WITH workers AS (SELECT rank, worker, quantile_cont(fetch_ns, 0.2) AS least,
                            median(fetch_ns) AS usual
                     FROM loader GROUP BY rank, worker),
         ranks AS (SELECT rank, max(least) AS slowest,
                          min(usual) AS fastest
                   FROM workers GROUP BY rank HAVING count(*) > 1)
    SELECT (SELECT max(slowest / fastest) > 1.6 FROM ranks)
       AND (SELECT min(fastest) FROM ranks)
           < 1.5 * (SELECT median(fetch_ns) FROM reference.loader)
       AND {WAITS_MORE}
"""

TOO_FEW_LOADER_WORKERS = f"""
    WITH now AS (SELECT max(workers) AS workers FROM (
                     SELECT count(DISTINCT worker) AS workers FROM loader GROUP BY rank)),
         then_ AS (SELECT min(workers) AS workers FROM (
                       SELECT count(DISTINCT worker) AS workers FROM reference.loader
                       GROUP BY rank))
    SELECT (SELECT now.workers < then_.workers FROM now, then_)
       AND (SELECT median(cpu_ns) FROM loader)
           < 1.2 * (SELECT median(cpu_ns) FROM reference.loader)
       AND (SELECT median(fetch_ns) FROM loader)
           < 1.2 * (SELECT median(fetch_ns) FROM reference.loader)
       AND {WAITS_MORE}
"""

# A rank that only copies to host memory while it saves is many times as fast as any disk.
WRITTEN_WHILE_SAVING = """
    (SELECT sum(write_bytes) FROM processes WHERE role = 'rank')
    / (SELECT sum(checkpoint_ns) + 1 FROM steps)
"""

SYNC_CHECKPOINT = f"""
    WITH now AS (SELECT max(share) AS share FROM
                 (SELECT sum(checkpoint_ns) * 1.0 / sum(duration_ns) AS share FROM steps
                  GROUP BY rank)),
         then_ AS (SELECT max(share) AS share FROM
                   (SELECT sum(checkpoint_ns) * 1.0 / sum(duration_ns) AS share
                    FROM reference.steps GROUP BY rank))
    SELECT (SELECT now.share > then_.share + 0.03 FROM now, then_)
       AND {WRITTEN_WHILE_SAVING} < 8
"""

ASYNC_CHECKPOINT_INTERFERENCE = f"""
    SELECT (SELECT count(*) > 0 FROM steps WHERE checkpoint_ns > 0)
       AND {WRITTEN_WHILE_SAVING} > 8
       AND (SELECT avg(duration_ns) FROM steps WHERE step > 0)
           > 1.03 * (SELECT avg(duration_ns) FROM reference.steps WHERE step > 0)
       AND (SELECT sum(write_bytes) FROM processes WHERE role = 'rank')
           > 1000000 + 2 * (SELECT sum(write_bytes) FROM reference.processes
                            WHERE role = 'rank')
"""

COPIES = """
    SELECT count(*) FILTER (name LIKE 'Memcpy HtoD (Pageable%') AS pageable,
           count(*) FILTER (name LIKE 'Memcpy HtoD (Pinned%') AS pinned
    FROM {schema}trace_events
"""
PAGEABLE_H2D_COPY = f"""
    WITH now AS ({COPIES.format(schema="")}), then_ AS ({COPIES.format(schema="reference.")})
    SELECT now.pageable > then_.pageable AND now.pinned < 0.5 * then_.pinned FROM now, then_
"""

DATA: dict[str, tuple[str, str]] = all_slower(
    {
        "dataloader_cpu_bound": (
            DATALOADER_CPU_BOUND,
            "loader workers of every rank use far more CPU for nearly every batch than in the"
            " reference, not in reads, and ranks wait",
        ),
        "data_straggler_rank": (
            DATA_STRAGGLER_RANK,
            "for some batches one rank's workers are slow and the others are not, then another"
            " rank's, and that rank alone waits for data",
        ),
        "slow_loader_worker": (
            SLOW_LOADER_WORKER,
            "nearly all batches of one loader worker take far longer than its siblings', which take"
            " what they took in the reference, and ranks wait for batches",
        ),
        "too_few_loader_workers": (
            TOO_FEW_LOADER_WORKERS,
            "fewer workers deliver batches than in the reference, each as fast as before, and ranks"
            " wait for batches",
        ),
        "pageable_h2d_copy": (
            PAGEABLE_H2D_COPY,
            "copies to the device that were pinned in the reference come from pageable memory",
        ),
        "sync_checkpoint": (
            SYNC_CHECKPOINT,
            "a rank spends over 3 % more of its steps' time in writing checkpoints, no faster than"
            " a disk takes them",
        ),
        "async_checkpoint_interference": (
            ASYNC_CHECKPOINT_INTERFERENCE,
            "a rank writes megabytes that the reference does not, beside steps instead of while it"
            " saves, and steps are longer",
        ),
    }
)
