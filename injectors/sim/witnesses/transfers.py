"""How long transfers take of themselves, once all members of a collective are there.

Collectives are of one kind if group, operation and size agree; of messages the sender counts, too.
The last to arrive waits for nobody, so the least time of a collective's members is the transfer's.
Exchanges in which ranks put in more or less than others are left out.
"""

from __future__ import annotations

from injectors.sim.witnesses.losses import LATE, LOSS, SLOWER

KIND = "process_group, op, bytes, sender"
# One row a transfer. A group does the same in every step, so numbers tell the step.
_TRANSFERS = f"""
    (SELECT {KIND}, seq, min(ns) AS ns, seq * any_value(steps) // any_value(numbers) AS step
     FROM (SELECT process_group, op, bytes, CASE WHEN op = 'send' THEN rank ELSE -1 END AS sender,
                  rank, seq, completed_ns - started_ns AS ns,
                  max(seq) OVER (PARTITION BY process_group) + 1 AS numbers,
                  (SELECT count(DISTINCT step) FROM {{0}}steps) AS steps
           FROM {{0}}collectives WHERE op <> 'recv'
           WINDOW together AS (PARTITION BY process_group, op, seq)
           QUALIFY op <> 'all_to_all' OR min(bytes) OVER together = max(bytes) OVER together)
     GROUP BY {KIND}, seq)
"""
# One row a kind: its median, its sum a step, and how much its mean differs between steps.
_KINDS = f"""
    (SELECT {KIND}, median(ns) AS ns, sum(sum_ns) / max(steps) AS sum_ns,
            quantile_cont(ns, 0.9) / quantile_cont(ns, 0.1) AS spread
     FROM (SELECT {KIND}, step, avg(ns) AS ns, sum(ns) AS sum_ns,
                  (SELECT count(DISTINCT step) FROM {{0}}steps) AS steps
           FROM {_TRANSFERS} GROUP BY {KIND}, step) GROUP BY {KIND})
"""
# Kinds of this run that the reference has, too: what the conditions below call `kinds`. A query
# begins with it, so that it is worked out once.
WITH_KINDS = f"""
    WITH kinds AS MATERIALIZED
    (SELECT {KIND}, now.ns, was.ns AS was_ns, now.ns / was.ns AS longer, now.sum_ns,
            now.sum_ns * (1 - was.ns / now.ns) AS grown_ns, now.spread, was.spread AS was_spread
     FROM {_KINDS.format("")} AS now JOIN {_KINDS.format("reference.")} AS was USING ({KIND}))
"""
# Steps are longer, and transfers of the same kinds are, by what makes up much of the loss.
GROWN = f"""(
    {SLOWER} AND (SELECT sum(sum_ns) > 1.06 * sum(sum_ns - grown_ns)
                         AND sum(grown_ns) > 0.25 * {LOSS} FROM kinds))"""
# How far from steady the longer ones are over steps, over what they were.
UNSTEADY = """(
    SELECT coalesce(sum(grown_ns * spread / was_spread) / sum(grown_ns), 1) FROM kinds
    WHERE grown_ns > 0)"""
# Of the longer kinds of one operation the smallest has grown by about as much as the largest.
ALIKE = """(
    SELECT count(*) > 0 FROM
        (SELECT min(bytes) AS small, arg_min(ns - was_ns, bytes) AS of_small,
                max(bytes) AS large, arg_max(ns - was_ns, bytes) AS of_large
         FROM kinds WHERE longer > 1.03 GROUP BY op)
    WHERE small < 0.6 * large AND of_small > 0.5 * (1 + small / large) * of_large)"""
# Of the large transfers of one group some are longer and others are not.
SOME_ONLY = """(
    SELECT count(*) > 0 FROM (SELECT max(longer) AS most, min(longer) AS least FROM kinds
                              WHERE bytes > 1e6 GROUP BY process_group, op)
    WHERE most > 1.1 AND least < 1.03)"""

# Groups of one name may lie on several hosts, and one of them may be slow: its ranks' least times
# are longer and others' are not, although nobody is late.
_LEAST = """
    (SELECT rank, process_group, op, bytes, quantile_cont(completed_ns - started_ns, 0.1) AS ns,
            count(*) * 1.0 / (SELECT count(DISTINCT step) FROM {0}steps) AS times
     FROM {0}collectives WHERE op NOT IN ('recv', 'all_to_all') AND bytes > 1e6
     GROUP BY rank, process_group, op, bytes)
"""
UNEQUAL = f"""(
    SELECT max(lost) > 0.25 * {LOSS} AND (SELECT count(*) = 0 FROM {LATE})
    FROM (SELECT max(now.times * (now.ns - was.ns)) AS lost
          FROM {_LEAST.format("")} AS now JOIN {_LEAST.format("reference.")} AS was
          USING (rank, process_group, op, bytes) GROUP BY process_group, op, bytes
          HAVING max(now.ns / was.ns) > 1.15 AND min(now.ns / was.ns) < 1.05))"""

# Bytes that wait where anything does, by host.
_QUEUES = """
    (SELECT host, avg(send_queue_bytes) AS bytes FROM {0}network
     JOIN (SELECT DISTINCT rank, host FROM {0}processes WHERE role = 'rank') USING (rank)
     WHERE send_queue_bytes > 0 GROUP BY host)
"""
HALF_FULL_BYTES = 213_000  # where the reference has no sample with anything in a queue
# Hosts whose queues are fuller than usual while they send: those before a slow path.
FULL_QUEUES = f"""(
    SELECT count(*) FROM {_QUEUES.format("")}
    WHERE bytes > 1.35 * coalesce((SELECT avg(bytes) FROM {_QUEUES.format("reference.")}),
                                  {HALF_FULL_BYTES}))"""
HOSTS = "(SELECT count(DISTINCT host) FROM processes WHERE role = 'rank')"
DROPPED = "(SELECT coalesce(sum(tx_dropped), 0) FROM network)"
