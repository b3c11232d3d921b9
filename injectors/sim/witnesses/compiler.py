"""Witnesses of causes in compilation, kernels and device memory: cause -> (query, what it says)."""

from __future__ import annotations

from injectors.sim.witnesses.slower import all_slower

PRODUCTS = "gemm|scudnn|implicit|convolve"
COUNTS = """
    SELECT count(*) FILTER (category = 'kernel' AND name NOT LIKE 'nccl%') * 1.0 AS kernels,
           count(*) FILTER (category = 'kernel' AND regexp_matches(name, '{products}')) * 1.0
           AS products,
           count(*) FILTER (category = 'kernel' AND name LIKE '%multi_tensor_apply%') * 1.0
           AS updates,
           count(*) FILTER (category = 'kernel'
                            AND regexp_matches(name, 'flash|fmha')) * 1.0 AS attention,
           count(*) FILTER (name = 'aten::isnan') * 1.0 AS checks
    FROM {schema}trace_events
"""
NOW_AND_THEN = (
    f"now AS ({COUNTS.format(schema='', products=PRODUCTS)}),"
    f" then_ AS ({COUNTS.format(schema='reference.', products=PRODUCTS)})"
)
LEFT_EAGER = "EXISTS (SELECT 1 FROM runtime WHERE event = 'recompile_limit')"

UNFUSED_KERNELS = f"""
    WITH {NOW_AND_THEN}
    SELECT now.kernels > 1.08 * then_.kernels + 10
       AND now.products BETWEEN 0.9 * then_.products AND 1.1 * then_.products
       AND now.updates >= 0.9 * then_.updates
       AND now.attention >= 0.95 * then_.attention
       AND now.checks < then_.checks + 20 AND NOT {LEFT_EAGER}
    FROM now, then_
"""

# Forward passes of one size: the first over later ones, summed over sizes that come again.
FIRST_OVER_REPEAT = """
    SELECT sum(first) / sum(later) AS ratio, count(*) AS repeats
    FROM (SELECT avg(took) FILTER (place = 1) AS first, avg(took) FILTER (place > 1) AS later
          FROM (SELECT s.rank, r.value, s.forward_ns AS took,
                       row_number() OVER (PARTITION BY s.rank, r.value ORDER BY s.start_ns)
                       AS place
                FROM {schema}steps s JOIN {schema}runtime r
                  ON r.rank = s.rank AND r.event = 'input_size'
                 AND r.time_ns BETWEEN s.start_ns AND s.start_ns + s.duration_ns
                WHERE s.step > 0)
          GROUP BY rank, value HAVING count(*) > 1)
"""
AUTOTUNE_PER_SHAPE = f"""
    WITH now AS ({FIRST_OVER_REPEAT.format(schema="")}),
         then_ AS ({FIRST_OVER_REPEAT.format(schema="reference.")})
    SELECT now.ratio > 1.3 * then_.ratio AND now.repeats >= 5 FROM now, then_
"""

# Quantiles of a kernel's lengths: a slower version moves all of them, waiting and contention some.
LENGTHS = """
    SELECT rank, name, count(*) AS calls, sum(duration_ns) AS took,
           quantile_cont(duration_ns, 0.1) AS low, quantile_cont(duration_ns, 0.3) AS less,
           median(duration_ns) AS middle, quantile_cont(duration_ns, 0.7) AS more
    FROM {schema}trace_events WHERE category = 'kernel' AND name NOT LIKE 'nccl%'
    GROUP BY rank, name
"""
KERNEL_REGRESSION = f"""
    WITH now AS ({LENGTHS.format(schema="")}), then_ AS ({LENGTHS.format(schema="reference.")}),
         ratios AS (SELECT rank, name, now.took AS took,
                           least(now.low / then_.low, now.less / then_.less,
                                 now.middle / then_.middle, now.more / then_.more) AS ratio,
                           now.took * 1.0 / now.calls / (then_.took * 1.0 / then_.calls) AS mean
                    FROM now JOIN then_ USING (rank, name)
                    WHERE abs(now.calls - then_.calls) <= 0.03 * then_.calls + 1),
         names AS (SELECT name, sum(took) / sum(sum(took)) OVER () AS share,
                          min(ratio) AS ratio, avg(mean) AS mean
                   FROM ratios GROUP BY name),
         clocks AS (SELECT rank, avg(sm_clock_mhz) AS clock, avg(processes) AS users,
                           avg(memory_used_bytes) AS used FROM gpu GROUP BY rank),
         clocks_then AS (SELECT rank, avg(sm_clock_mhz) AS clock, avg(processes) AS users,
                                avg(memory_used_bytes) AS used FROM reference.gpu GROUP BY rank)
    SELECT (SELECT max(ratio) > 1.15 FROM names WHERE share > 0.03)
       AND (SELECT max(ratio) FROM names WHERE share > 0.03)
           > 1.1 * (SELECT quantile_cont(mean, 0.5) FROM names)
       AND (SELECT sum(now.took) FROM now ANTI JOIN then_ USING (name))
           IS NOT DISTINCT FROM NULL
       AND (SELECT min(clocks.clock / clocks_then.clock) > 0.95
               AND max(clocks.users - clocks_then.users) < 0.4
               AND max(clocks.used / clocks_then.used) < 1.06
            FROM clocks JOIN clocks_then USING (rank))
       AND (SELECT sum(tokens) FROM steps) BETWEEN 0.97 * (SELECT sum(tokens) FROM reference.steps)
                                               AND 1.03 * (SELECT sum(tokens) FROM reference.steps)
       AND (SELECT coalesce(stddev(value) / avg(value), 0) < 0.15 OR avg(value) < 100 FROM runtime
            WHERE event = 'sequence_lengths' AND detail = 'sum of squares')
"""

COMPILER: dict[str, tuple[str, str]] = all_slower(
    {
        "unfused_kernels": (
            UNFUSED_KERNELS,
            "steps run more kernels than in the reference for as many products, fused attention and"
            " updates, and no function hit the compiler's limit",
        ),
        "autotune_per_shape": (
            AUTOTUNE_PER_SHAPE,
            "the forward pass of an input size not seen before is long, later ones of it are not",
        ),
        "kernel_regression": (
            KERNEL_REGRESSION,
            "a kernel called as often as in the reference takes longer on all ranks and at all"
            " sizes, most do not, at the same clocks and tokens",
        ),
    }
)
