"""Coarser telemetry: samples further apart, as a cheaper collector would take them."""

from __future__ import annotations

import pandas as pd

from cases.tables import TABLES
from harness.degrade.copies import CaseCopy, RunCopy

SAMPLED = ("gpu", "host", "network", "processes")


def coarse_telemetry(copy: CaseCopy, level: float, seed: int) -> CaseCopy:
    """Take one sample where there were several, alike in the reference run.

    Counters are what they grew over all of these, everything else is as it was in the last. Of an
    incomplete stretch at the end there is no sample, unless there would be none at all.

    Args:
        copy: The case.
        level: How many samples become one.
        seed: Draws nothing here.
    """
    if not set(SAMPLED) & copy.run.signals:
        return copy
    reference = copy.reference and _coarse_run(copy.reference, int(level))
    return copy.with_runs(_coarse_run(copy.run, int(level)), reference)


def _coarse_run(run: RunCopy, times: int) -> RunCopy:
    names = [name for name in SAMPLED if name in run.tables]
    return run.with_tables({name: coarse(name, run.frame(name), times) for name in names})


def coarse(name: str, frame: pd.DataFrame, times: int) -> pd.DataFrame:
    """Make one row of each `times` rows of an entity (rank, host or process) of a table."""
    if frame.empty:
        return frame
    table = TABLES[name]
    entity = [column for column in table.order if column != "time_ns"]
    frame = frame.sort_values(list(table.order), kind="stable").reset_index(drop=True)
    own = frame.groupby(entity, dropna=False, sort=False)
    place, total = own.cumcount(), own[entity[0]].transform("size")
    stretch = place // times
    # What is left over at an entity's end counts only where it is all there is.
    whole = (stretch + 1) * times <= total.where(total >= times, times)
    rows = frame.loc[whole]
    stretches = rows.groupby([*(rows[column] for column in entity), stretch[whole]], dropna=False)
    last = stretches.tail(1)
    growth = list(table.growth)
    if not growth:
        return last
    number = stretches.ngroup()
    sums = _sums(rows[growth], number).loc[number.loc[last.index]]
    return last.assign(**{column: sums[column].array for column in growth})


def _sums(counters: pd.DataFrame, number: pd.Series[int]) -> pd.DataFrame:
    """Sum counters over stretches; null where one of the samples has not been read."""
    grouped = counters.astype("Int64").groupby(number)
    return grouped.sum().where(grouped.count().eq(grouped.size(), axis=0))
