"""What witnesses of simulated cases share: how much slower a job is, and which rank makes it so.

A fault that costs nothing leaves the same marks as one that does, so most witnesses ask for a loss
besides their cause's own marks. The first step waits for its first batch and is left out.
"""

from __future__ import annotations

MEAN = "(SELECT avg(duration_ns) FROM {0}steps WHERE step > 0)"
NOW, THEN = MEAN.format(""), MEAN.format("reference.")
LOSS = f"({NOW} - {THEN})"  # ns that a step has lost
SLOWER = f"{NOW} > 1.04 * {THEN}"  # healthy is up to 1.03, faulty from 1.05 on

# Time of a step in which a rank is not in a collective. Whoever makes the others wait has more of
# it than before, they have not.
_BUSY = """
    (SELECT rank, duration - coalesce(joined, 0) AS ns
     FROM (SELECT rank, avg(duration_ns) AS duration, count(*) AS steps
           FROM {0}steps GROUP BY rank)
     LEFT JOIN (SELECT rank, sum(completed_ns - started_ns) * 1.0
                             / (SELECT count(DISTINCT step) FROM {0}steps) AS joined
                FROM {0}collectives GROUP BY rank) USING (rank))
"""
# Ranks that keep others waiting, or the only one: their own time has grown by most of the loss.
LATE = f"""
    (SELECT rank FROM {_BUSY.format("")} AS now JOIN {_BUSY.format("reference.")} AS was
     USING (rank) WHERE now.ns - was.ns > 0.6 * {LOSS})
"""
