"""The table `loader`: one row a batch, as the loader's workers time themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd

from injectors.sim.clocks import Clocks
from injectors.sim.run import Run
from injectors.sim.tables.batches import Batches, queue_depth


def loader_table(run: Run, clocks: Clocks, done: Batches) -> pd.DataFrame:
    """Return the rows, one a rank and batch."""
    count, ranks = done.ready_ns.shape
    depth = pd.Series(pd.NA, range(count * ranks), dtype="Int64")
    worker = np.full(done.worker.shape, -1)
    if run.job.loader.workers:
        depth = pd.Series(queue_depth(run, done).T.ravel(), dtype="Int64")
        worker = done.worker
    return pd.DataFrame(
        {
            "rank": np.repeat(np.arange(ranks), count),
            "worker": worker.T.ravel(),
            "batch": np.tile(np.arange(count), ranks),
            "start_ns": clocks.of_ranks(done.start_ns).T.ravel(),
            "fetch_ns": (done.ready_ns - done.start_ns).T.ravel(),
            "read_ns": done.read_ns.T.ravel(),
            "cpu_ns": done.cpu_ns.T.ravel(),
            "read_bytes": done.read_bytes.T.ravel(),
            "queue_depth": depth,
        }
    )
