"""Witnesses of causes in the model and the training framework: cause -> (query, what it says)."""

from __future__ import annotations

from injectors.sim.witnesses.slower import all_slower

# Products that a model's layers are made of: cut batches multiply them, nothing else does.
PRODUCTS = "gemm|scudnn|implicit|convolve"
COUNTS = """
    SELECT count(*) FILTER (category = 'kernel' AND name NOT LIKE 'nccl%') * 1.0 AS kernels,
           count(*) FILTER (category = 'kernel' AND regexp_matches(name, '{products}')) * 1.0
           AS products,
           count(*) FILTER (category = 'kernel'
                            AND regexp_matches(name, 'sgemm|scudnn|tf32|s1688')) * 1.0 AS wide,
           count(*) FILTER (name = 'aten::_local_scalar_dense') * 1.0 AS reads,
           count(*) FILTER (name IN ('cudaStreamSynchronize', 'cudaDeviceSynchronize')) * 1.0
           AS waits
    FROM {schema}trace_events
"""
NOW_AND_THEN = (
    f"now AS ({COUNTS.format(schema='', products=PRODUCTS)}),"
    f" then_ AS ({COUNTS.format(schema='reference.', products=PRODUCTS)})"
)
SAME_TOKENS = """
    (SELECT avg(tokens) FROM steps) BETWEEN 0.97 * (SELECT avg(tokens) FROM reference.steps)
                                        AND 1.03 * (SELECT avg(tokens) FROM reference.steps)
"""

HOST_DEVICE_SYNC = f"""
    WITH {NOW_AND_THEN}
    SELECT now.reads > 1.5 * then_.reads + 5 AND now.waits > 1.5 * then_.waits + 5
       AND now.products < 1.2 * then_.products
    FROM now, then_
"""

KERNEL_LAUNCH_BOUND = f"""
    WITH {NOW_AND_THEN}
    SELECT now.products > 1.5 * then_.products AND now.kernels > 1.4 * then_.kernels
       AND {SAME_TOKENS}
    FROM now, then_
"""

# Time of rank 0 that no phase holds, beyond what is usual: of those steps in which most is lost.
BLOCKING_METRIC_IO = """
    WITH gaps AS (SELECT step, duration_ns, duration_ns - data_wait_ns - forward_ns - backward_ns
                         - optimizer_ns - coalesce(checkpoint_ns, 0) AS gap
                  FROM steps WHERE rank = 0),
         usual AS (SELECT quantile_cont(gap, 0.4) AS gap, avg(duration_ns) AS length FROM gaps),
         late AS (SELECT step, gaps.gap - usual.gap AS beyond,
                         step - lag(step) OVER (ORDER BY step) AS period
                  FROM gaps, usual
                  WHERE gaps.gap - usual.gap
                        > 0.4 * (SELECT quantile_cont(gap, 0.97) FROM gaps) - 0.4 * usual.gap),
         cpu AS (SELECT sum(cpu_ns) * 1.0 / (max(time_ns) - min(time_ns)) AS cores
                 FROM processes WHERE role = 'rank' AND rank = 0),
         cpu_then AS (SELECT sum(cpu_ns) * 1.0 / (max(time_ns) - min(time_ns)) AS cores
                      FROM reference.processes WHERE role = 'rank' AND rank = 0)
    SELECT (SELECT sum(beyond) FROM late) > 0.04 * (SELECT sum(duration_ns) FROM gaps)
       AND (SELECT count(*) >= 4 AND avg((period = (SELECT mode(period) FROM late))::INT) > 0.9
            FROM late)
       AND (SELECT avg((step % (SELECT mode(period) FROM late)
                        = (SELECT mode(step % (SELECT mode(period) FROM late)) FROM late))::INT)
            > 0.9 FROM late)
       AND (SELECT cpu.cores < cpu_then.cores FROM cpu, cpu_then)
"""

# When a rank's host asked for the collectives of a step, after the batch had come.
ASKED = """
    SELECT c.rank, s.step, avg(c.created_ns - s.start_ns - s.data_wait_ns) AS asked
    FROM {schema}collectives c ASOF JOIN {schema}steps s
      ON s.rank = c.rank AND c.created_ns >= s.start_ns
    GROUP BY c.rank, s.step
"""
BEHIND = """
    SELECT rank, quantile_cont(asked - usual, 0.2) AS least, avg(asked - usual) AS mean
    FROM (SELECT rank, step, asked, median(asked) OVER (PARTITION BY step) AS usual
          FROM ({asked}))
    GROUP BY rank
"""
RANK_EXTRA_HOST_WORK = f"""
    WITH now AS ({BEHIND.format(asked=ASKED.format(schema=""))}),
         then_ AS ({BEHIND.format(asked=ASKED.format(schema="reference."))}),
         late AS (SELECT arg_max(rank, now.mean - then_.mean) AS rank,
                         max(now.mean - then_.mean) AS mean,
                         arg_max(now.least - then_.mean, now.mean - then_.mean) AS least
                  FROM now JOIN then_ USING (rank)),
         lost AS (SELECT (SELECT avg(duration_ns) FROM steps WHERE step > 0)
                         - (SELECT avg(duration_ns) FROM reference.steps WHERE step > 0) AS mean),
         delay AS (SELECT sum(run_delay_ns) * 1.0 / sum(cpu_ns) AS share FROM processes, late
                   WHERE role = 'rank' AND processes.rank = late.rank),
         delay_then AS (SELECT sum(run_delay_ns) * 1.0 / sum(cpu_ns) AS share
                        FROM reference.processes, late
                        WHERE role = 'rank' AND reference.processes.rank = late.rank)
    SELECT late.mean > 0.5 * lost.mean AND late.least > 0.4 * late.mean AND lost.mean > 0
       AND delay.share < delay_then.share + 0.05
       AND (SELECT sum(cgroup_throttled_ns) FROM host)
           < (SELECT sum(cgroup_throttled_ns) FROM reference.host)
             + 0.01 * (SELECT sum(duration_ns) FROM steps WHERE rank = 0)
    FROM late, lost, delay, delay_then
"""

# Of the time of collectives on a device the share in which it computes as well.
HIDDEN = """
    SELECT sum(hidden) / sum(length) AS share FROM (
        SELECT any_value(c.duration_ns) AS length,
               coalesce(sum(least(c.start_ns + c.duration_ns, k.start_ns + k.duration_ns)
                            - greatest(c.start_ns, k.start_ns))
                        FILTER (k.start_ns IS NOT NULL), 0) AS hidden
        FROM (SELECT rank, start_ns, duration_ns FROM {schema}trace_events
              WHERE category = 'kernel' AND name LIKE 'nccl%') c
        LEFT JOIN (SELECT rank, start_ns, duration_ns FROM {schema}trace_events
                   WHERE category = 'kernel' AND name NOT LIKE 'nccl%') k
          ON k.rank = c.rank AND k.start_ns < c.start_ns + c.duration_ns
         AND c.start_ns < k.start_ns + k.duration_ns
        GROUP BY c.rank, c.start_ns)
"""
COMM_OVERLAP_LOST = f"""
    WITH {NOW_AND_THEN},
         hidden AS ({HIDDEN.format(schema="")}), usual AS ({HIDDEN.format(schema="reference.")})
    SELECT usual.share > 0.1 AND hidden.share < 0.35 * usual.share
       AND now.products < 1.2 * then_.products
    FROM hidden, usual, now, then_
"""

REDUCED = """
    SELECT count(*) * 1.0 / tokens AS calls, sum(bytes) / tokens AS bytes, max(dtype) AS dtype
    FROM {schema}collectives, (SELECT sum(tokens) * 1.0 AS tokens FROM {schema}steps)
    WHERE op = 'all_reduce' AND bytes >= 4096 GROUP BY tokens
"""
GRAD_SYNC_EVERY_MICROBATCH = f"""
    WITH now AS ({REDUCED.format(schema="")}), then_ AS ({REDUCED.format(schema="reference.")})
    SELECT now.bytes > 1.4 * then_.bytes AND now.calls > 1.4 * then_.calls
       AND now.bytes / now.calls BETWEEN 0.8 * then_.bytes / then_.calls
                                     AND 1.25 * then_.bytes / then_.calls
       AND now.dtype = then_.dtype
    FROM now, then_
"""

SMALL = """
    SELECT count(*) FILTER (bytes < 4096) * 1.0 / (SELECT count(*) FROM {schema}steps) AS calls,
           sum(bytes) * 1.0 / (SELECT count(*) FROM {schema}steps) AS bytes
    FROM {schema}collectives
"""
EXCESSIVE_SMALL_COLLECTIVES = f"""
    WITH now AS ({SMALL.format(schema="")}), then_ AS ({SMALL.format(schema="reference.")})
    SELECT now.calls > 2 * then_.calls + 10
       AND now.bytes BETWEEN 0.95 * then_.bytes AND 1.05 * then_.bytes
    FROM now, then_
"""

PRECISION_FALLBACK = f"""
    WITH {NOW_AND_THEN}
    SELECT now.wide > then_.wide + 0.02 * then_.products
       AND now.products BETWEEN 0.9 * then_.products AND 1.1 * then_.products
    FROM now, then_
"""

PADDING_WASTE = """
    SELECT (SELECT sum(tokens) FROM steps)
           > 1.04 * (SELECT sum(value) FROM runtime
                     WHERE event = 'sequence_lengths' AND detail = 'sum')
       AND (SELECT sum(tokens) FROM reference.steps)
           < 1.02 * (SELECT sum(value) FROM reference.runtime
                     WHERE event = 'sequence_lengths' AND detail = 'sum')
"""

# A stage is all of its replicas; where layers are moved to one, others are left with fewer.
PP_STAGE_IMBALANCE = """
    WITH now AS (SELECT rank, avg(forward_ns + backward_ns) AS busy FROM steps GROUP BY rank),
         then_ AS (SELECT rank, avg(forward_ns + backward_ns) AS busy
                   FROM reference.steps GROUP BY rank),
         moved AS (SELECT now.busy / then_.busy AS ratio FROM now JOIN then_ USING (rank))
    SELECT count(*) FILTER (ratio > 1.08) >= 2 AND count(*) FILTER (ratio < 0.95) >= 2
       AND count(*) FILTER (ratio > 1.08) <= 0.5 * count(*)
    FROM moved
"""

FRAMEWORK: dict[str, tuple[str, str]] = all_slower(
    {
        "host_device_sync": (
            HOST_DEVICE_SYNC,
            "the host reads values back and waits for its stream far more often, for as many"
            " products",
        ),
        "kernel_launch_bound": (
            KERNEL_LAUNCH_BOUND,
            "as many tokens take far more matrix products and other kernels",
        ),
        "blocking_metric_io": (
            BLOCKING_METRIC_IO,
            "rank 0 waits outside all phases, always the same number of steps apart, and uses less"
            " CPU than in the reference",
        ),
        "rank_extra_host_work": (
            RANK_EXTRA_HOST_WORK,
            "one rank asks for its collectives later than the others in nearly every step, neither"
            " for want of a batch nor of a core",
        ),
        "comm_overlap_lost": (
            COMM_OVERLAP_LOST,
            "devices hardly compute while collectives run, unlike in the reference",
        ),
        "grad_sync_every_microbatch": (
            GRAD_SYNC_EVERY_MICROBATCH,
            "gradients of the same size are reduced several times as often for the same tokens",
        ),
        "excessive_small_collectives": (
            EXCESSIVE_SMALL_COLLECTIVES,
            "a step has many more collectives of a few bytes, and as many bytes in all",
        ),
        "precision_fallback": (
            PRECISION_FALLBACK,
            "of as many products some run in float32 kernels that the reference does not use",
        ),
        "padding_waste": (
            PADDING_WASTE,
            "steps compute more tokens than their sequences have, unlike in the reference",
        ),
        "pp_stage_imbalance": (
            PP_STAGE_IMBALANCE,
            "all replicas of a stage compute longer than in the reference, those of others shorter",
        ),
    }
)
