"""A case's numbers: ranks' metrics reduced over ranks, and those of the whole job."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cases.case import Case
from harness.diagnosers.features.compare import Compared
from harness.diagnosers.features.metrics import METRICS
from harness.diagnosers.features.serving import serving_numbers
from harness.diagnosers.features.sizes import first_over_repeat
from harness.diagnosers.features.traces import compared, kernel_growth, trace_numbers
from harness.diagnosers.features.transfers import transfer_kinds, transfer_numbers
from harness.diagnosers.features.words import spoken


def over_ranks(both: Compared) -> dict[str, float]:
    """Reduce each metric over ranks."""
    change, now = both.change, both.now
    tables = {
        "median": change.median(),
        "max": change.max(),
        "min": change.min(),
        "now": now.median(),
        "spread": now.max() - now.median(),
    }
    return {
        f"{metric}.{how}": float(column[metric])
        for how, column in tables.items()
        for metric in METRICS
        if not (how == "now" and METRICS[metric].unit == "ratio")
    }


def of_ranks(both: Compared) -> pd.DataFrame:
    """One row a rank: each metric's change, and how far it lies from the median rank's."""
    apart = both.change - both.change.median()
    peers = both.now - both.now.median()
    scale = max(both.slowdown - 1, 0.02) if np.isfinite(both.slowdown) else 1.0
    timed = [name for name in METRICS if METRICS[name].unit == "step"]
    apart[timed] = apart[timed] / scale  # in parts of what the job has lost
    peers[timed] = peers[timed] / scale
    return pd.concat(
        [apart.add_suffix(".apart"), peers.add_suffix(".peers"), both.change.add_suffix(".change")],
        axis=1,
    )


def of_job(case: Case) -> dict[str, float]:
    """Numbers of traces, transfers, logs and servers, and what became of them."""
    now = (
        trace_numbers(case) | serving_numbers(case) | {"first_over_repeat": first_over_repeat(case)}
    )
    out = {f"job.{name}": value for name, value in now.items()}
    said = spoken(case)
    out |= {f"said.{name}": value for name, value in said.items()}
    if case.reference is None:
        return out
    then = trace_numbers(case.reference) | serving_numbers(case.reference)
    then |= {"first_over_repeat": first_over_repeat(case.reference)}
    kinds, kinds_then = transfer_kinds(case), transfer_kinds(case.reference)
    out |= {f"job.{name}": value for name, value in transfer_numbers(kinds, kinds_then).items()}
    out |= {f"job.{name}.growth": value for name, value in compared(now, then).items()}
    out |= {f"job.{name}": value for name, value in kernel_growth(case, case.reference).items()}
    before = spoken(case.reference)
    out |= {f"said.{name}.new": value - before[name] for name, value in said.items()}
    return out
