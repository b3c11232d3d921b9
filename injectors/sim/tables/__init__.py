"""Signal tables of simulated training runs, each a consequence of the job and of its times.

    frames = tables(simulate(job, program, sampled=(0,)))

Whatever irregular is in them (late samples, packets sent again, a process at low priority) is drawn
by keys, in healthy jobs as in others. All numbers are whole but for shares and watts, which are
quotients of whole ones.
"""

from __future__ import annotations

import pandas as pd

from injectors.sim.run import Run
from injectors.sim.tables.activity import activity
from injectors.sim.tables.collectives import collective_table
from injectors.sim.tables.gpu import gpu_table
from injectors.sim.tables.host import host_table
from injectors.sim.tables.loader import loader_table
from injectors.sim.tables.loads import computed_tokens
from injectors.sim.tables.logs import log_table
from injectors.sim.tables.network import network_table
from injectors.sim.tables.processes import process_table, thinned
from injectors.sim.tables.runtime import runtime_table
from injectors.sim.tables.steps import step_table

__all__ = ["tables"]


def tables(run: Run) -> dict[str, pd.DataFrame]:
    """Return the tables that the job has, by name, in the columns of cases.tables."""
    done = activity(run)
    clocks, samples = done.clocks, done.samples
    found = {
        "steps": step_table(run, clocks, computed_tokens(run)),
        "host": host_table(run, samples, done),
        "processes": process_table(run, thinned(run, samples, done.nominal_ns), done),
        "runtime": runtime_table(run, clocks),
        "logs": log_table(run, clocks),
    }
    if len(collectives := collective_table(run, clocks)):
        found["collectives"] = collectives
    if run.job.machine.gpu is not None:
        found["gpu"] = gpu_table(run, samples, done.traffic)
    if run.job.places.hosts > 1 or (run.job.machine.gpu is None and run.job.places.ranks > 1):
        found["network"] = network_table(run, samples, done)
    if done.batches is not None:
        found["loader"] = loader_table(run, clocks, done.batches)
    return found
