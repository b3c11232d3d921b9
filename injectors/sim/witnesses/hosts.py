"""Witnesses of causes in the hosts' CPUs: cause -> (query, what it says)."""

from __future__ import annotations

from injectors.sim.witnesses.losses import LATE, LOSS, SLOWER

# Samples of a process count what has grown since the one before.
_RATES = """
    (SELECT host, role, rank, process, any_value(nice) AS nice, max(threads) AS threads,
            min(affinity) AS affinity,
            sum(run_delay_ns) * 1.0 / sum(cpu_ns) AS waits,
            sum(read_bytes) * 1.0 / sum(cpu_ns) AS reads,
            avg(cpu_ns) / any_value(interval_ns) AS cores
     FROM {0}processes, (SELECT (max(time_ns) - min(time_ns)) * 1.0
                                / greatest(count(DISTINCT time_ns) - 1, 1) AS interval_ns
                         FROM {0}processes
                         WHERE host = (SELECT min(host) FROM {0}processes))
     GROUP BY host, role, rank, process)
"""
# Cores that others than the job use on a host: those that work, and agents, which read; and how
# long the job's own processes wait for a core for each unit of CPU time.
_ON_HOSTS = f"""
    (SELECT host, sum(CASE WHEN role = 'other' AND nice < 10 AND reads < 1e-4 THEN cores ELSE 0 END)
                  AS busy,
            sum(CASE WHEN role = 'other' AND nice < 10 AND reads >= 1e-4 THEN cores ELSE 0 END)
                  AS polling,
            max(CASE WHEN role <> 'other' THEN waits ELSE 0 END) AS waits
     FROM {_RATES} GROUP BY host)
"""
HOSTS_COMPARED = f"""
    (SELECT now.*, was.busy AS was_busy, was.polling AS was_polling, was.waits AS was_waits
     FROM {_ON_HOSTS.format("")} AS now JOIN {_ON_HOSTS.format("reference.")} AS was USING (host))
"""
THROTTLED = """coalesce((
    SELECT max(held) FROM (SELECT sum(cgroup_throttled_ns) * 1.0 / (max(time_ns) - min(time_ns))
                                  AS held FROM {0}host GROUP BY host)), 0)"""
# A rank's own process, and its steps.
_RANKS = f"""
    (SELECT rank, host, threads, affinity, waits, duration * (1 - cores * (1 + waits)) AS asleep,
            outside
     FROM {_RATES}
     JOIN (SELECT rank, avg(duration_ns) AS duration,
                  avg(duration_ns - forward_ns - backward_ns - optimizer_ns) AS outside
           FROM {{0}}steps GROUP BY rank) USING (rank) WHERE role = 'rank')
"""
RANKS_COMPARED = f"""
    (SELECT now.*, was.affinity AS was_affinity, was.waits AS was_waits, was.threads AS was_threads,
            now.asleep - was.asleep AS more_asleep, now.outside - was.outside AS more_outside
     FROM {_RANKS.format("")} AS now JOIN {_RANKS.format("reference.")} AS was USING (rank))
"""
# Most that a rank's garbage collections take of a step.
COLLECTED = """coalesce((
    SELECT max(ns) FROM (SELECT sum(duration_ns) * 1.0 / (SELECT count(DISTINCT step) FROM steps)
                                AS ns FROM runtime WHERE event = 'gc' GROUP BY rank)), 0)"""
# CPU time of a rank's workers for a batch, over what it was.
_WORK = "(SELECT rank, avg(cpu_ns) AS ns FROM {0}loader GROUP BY rank)"
WORK_COMPARED = f"""
    (SELECT rank, host, now.ns / was.ns AS longer
     FROM {_WORK.format("")} AS now JOIN {_WORK.format("reference.")} AS was USING (rank)
     JOIN (SELECT DISTINCT rank, host FROM processes WHERE role = 'rank') USING (rank))
"""
BANDWIDTH = "(SELECT host, avg(memory_bandwidth_bytes_per_s) AS moved FROM {0}host GROUP BY host)"

HOSTS: dict[str, tuple[str, str]] = {
    "cpu_contention_colocated": (
        f"""
        SELECT {SLOWER} AND count(*) > 0 FROM {HOSTS_COMPARED}
        WHERE busy > was_busy + 0.5 AND waits > was_waits + 0.1
        """,
        "on a host processes outside the job use more cores than in the reference, at ordinary"
        " priority, the job's own wait for a core there, and steps are longer",
    ),
    "cgroup_cpu_throttle": (
        f"""
        SELECT {SLOWER} AND {THROTTLED.format("")} > 0.01
           AND {THROTTLED.format("")} > 3 * {THROTTLED.format("reference.")}
        """,
        "a CPU quota holds the job's processes on a host back for over 1 % of the time, at least"
        " three times as long as in the reference, and steps are longer",
    ),
    "thread_oversubscription": (
        f"""
        SELECT {SLOWER} AND count(*) > 0 FROM {RANKS_COMPARED}
        WHERE threads > was_threads + (SELECT max(cores) FROM host) AND waits > was_waits + 0.05
        """,
        "a rank has more further threads than the host has cores, they wait for a core runnable,"
        " and steps are longer",
    ),
    "rank_affinity_overlap": (
        f"""
        SELECT {SLOWER} AND count(*) > 1 FROM {RANKS_COMPARED}
        WHERE affinity = 1 AND was_affinity > 1 AND waits > was_waits + 0.2
        """,
        "two ranks or more may use one core only, which they could not before, and wait for it",
    ),
    "process_suspended": (
        f"""
        SELECT {SLOWER} AND {THROTTLED.format("")} < 0.01
           AND max(more_asleep) > 0.5 * {LOSS}
           AND (count(*) = 1 OR median(more_asleep) < 0.3 * {LOSS})
           AND max_by(waits - was_waits, more_asleep) < 0.02
           AND max_by(more_outside, more_asleep) < 0.3 * {LOSS}
           AND {COLLECTED} < 0.3 * {LOSS}
        FROM {RANKS_COMPARED}
        """,
        "in its passes one rank's process uses no CPU for as long as steps have lost, and is not"
        " runnable either, while no quota holds it back and Python collects no garbage",
    ),
    "monitoring_interference": (
        f"""
        SELECT {SLOWER} AND count(*) > 0 FROM {HOSTS_COMPARED} WHERE polling > was_polling + 0.04
        """,
        "agents that read use more of a host's cores than in the reference, and steps are longer",
    ),
    "memory_bandwidth_contention": (
        f"""
        SELECT {SLOWER} AND count(*) > 0
        FROM {HOSTS_COMPARED} JOIN {BANDWIDTH.format("")} AS now USING (host)
        JOIN {BANDWIDTH.format("reference.")} AS was USING (host)
        WHERE busy > was_busy + 0.5 AND waits < was_waits + 0.1 AND now.moved > was.moved + 1e10
          AND (SELECT avg(longer) > 1.1 FROM {WORK_COMPARED} AS work WHERE work.host = now.host)
        """,
        "a process outside the job moves bytes over a host's memory, and batches cost the workers"
        " there more CPU time, though none waits for a core",
    ),
    "numa_misplacement": (
        f"""
        SELECT {SLOWER} AND bool_and(rank IN {LATE})
           AND (SELECT count(*) = 0 FROM {HOSTS_COMPARED} WHERE busy > was_busy + 0.5)
        FROM {WORK_COMPARED} AS own
        WHERE longer > 1.07
          AND longer > 1.05 * (SELECT min(longer) FROM {WORK_COMPARED} AS near
                               WHERE near.host = own.host)
        """,
        "batches cost the workers of some ranks more CPU time than in the reference and than those"
        " of others on the host, with no foreign process at work, and these ranks keep others"
        " waiting",
    ),
    "cpu_low_frequency": (
        f"""
        SELECT {SLOWER} AND count(*) > 0
        FROM (SELECT host, min(longer) AS longer FROM {WORK_COMPARED} GROUP BY host)
        JOIN {HOSTS_COMPARED} USING (host)
        WHERE longer > 1.2 AND waits < was_waits + 0.1 AND busy < was_busy + 0.5
        """,
        "batches cost all workers of a host more CPU time than in the reference, none waits for a"
        " core, and no foreign process is at work",
    ),
}
