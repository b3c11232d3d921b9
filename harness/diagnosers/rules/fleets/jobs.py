"""Jobs of a fleet held against jobs alike of the earlier period.

Values are logarithms of ratios to jobs alike: 0.05 is 5 % more. A machine or card that was there
before is held against its own past as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from cases.case import Recording
from harness.diagnosers.features.arrays import Floats, Groups, floats_of
from harness.diagnosers.features.devices import HOT_BITS

Members = NDArray[np.bool_]
Names = NDArray[np.object_]

ALIKE = ("model", "config", "gpu_model", "ranks", "batch_size", "input_size")
NAMES = (*ALIKE, "driver", "nccl", "framework", "image", "storage", "machine", "gpu_serial")
DIFFERENCES = ("recompiles", "hot")  # most jobs have none of these: no ratio can be taken


class Jobs:
    """The jobs of one period that did a step, as arrays; names that are null are ""."""

    def __init__(self, recording: Recording) -> None:
        table = recording.arrow("jobs")
        table = table.filter(np.asarray(table["steps"]) > 0)
        self._table = table
        self.names = {name: _text(table[name]) for name in NAMES}
        serial = self.names["gpu_serial"]
        machine = self.names["machine"] + "/" + self.names["ranks"]
        self.units: Names = np.where(serial == "", machine, serial)
        self.shared: Members = serial == ""

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def numbers(self, name: str) -> Floats:
        """A column, or what is derived of some; NaN where it is null."""
        if name == "seconds":  # killed jobs report no step, but how far they came is known
            return self.numbers("duration_ns") / self.numbers("steps") / 1e9
        if name == "cycles":
            return self.numbers("compute_ns") * self.numbers("sm_clock_mhz")
        if name == "tensor_work":
            active = self.numbers("tensor_active_percent") * self.numbers("step_ns")
            return active * self.numbers("sm_clock_mhz")
        if name == "received":
            return self.numbers("pcie_rx_bytes_per_s") * self.numbers("step_ns")
        if name == "hot":
            bits = self.numbers("event_reasons")
            set_ = np.nan_to_num(bits).astype(np.int64) & HOT_BITS > 0
            return np.where(np.isnan(bits), np.nan, set_.astype(float))
        return floats_of(self._table, name)


@dataclass(frozen=True)
class Compared:
    """A column held against jobs alike and against each unit's past.

    Attributes:
        now: One value a job of the period.
        past: The same of the reference.
        doubt: Variance of each unit's offset that its past leaves open; of a new card nothing is
            known but how cards differ.
    """

    now: Floats
    past: Floats
    doubt: Floats


class Fleet:
    """The jobs of both periods, and how they differ from jobs alike."""

    def __init__(self, now: Recording, past: Recording) -> None:
        self.now, self.past = Jobs(now), Jobs(past)
        keys = [pd.DataFrame({c: jobs.names[c] for c in ALIKE}) for jobs in (self.now, self.past)]
        groups = pd.concat(keys).groupby(list(ALIKE), sort=False).ngroup()
        kinds = groups.to_numpy().astype(np.int64)
        self._kinds, self._past_kinds = kinds[: len(self.now)], kinds[len(self.now) :]
        units, codes = np.unique(
            np.concatenate([self.now.units, self.past.units]).astype(str), return_inverse=True
        )
        self.units, self._past_units = codes[: len(self.now)], codes[len(self.now) :]
        self._shared = np.zeros(len(units), bool)
        self._shared[codes] = np.concatenate([self.now.shared, self.past.shared])
        self._known: dict[str, Compared] = {}

    def compared(self, name: str) -> Compared:
        """log(own / usual) of a column; own - usual for `recompiles` and `hot`."""
        if name not in self._known:
            self._known[name] = self._compare(name)
        return self._known[name]

    def growth(self, part: str) -> Floats:
        """How much a part of the step grew, as a share of the usual step."""
        grown = self.now.numbers(part) - self._usual(part)[self._kinds]
        return grown / self._usual("step_ns")[self._kinds]

    def _compare(self, name: str) -> Compared:
        usual, own, before = self._usual(name), self.now.numbers(name), self.past.numbers(name)
        take = _difference if name in DIFFERENCES else _log_ratio
        now, past = take(own, usual[self._kinds]), take(before, usual[self._past_kinds])
        offset, doubt = self._offsets(past)
        return Compared(now - offset[self.units], past - offset[self._past_units], doubt)

    def _usual(self, name: str) -> Floats:
        """Mean over the reference's jobs of each kind; NaN where there were none."""
        count = 1 + max(self._kinds.max(initial=0), self._past_kinds.max(initial=0))
        return Groups(self._past_kinds, int(count)).mean(self.past.numbers(name))

    def _offsets(self, past: Floats) -> tuple[Floats, Floats]:
        """Best prediction of each unit's offset, and the variance that remains.

        Random effects: a unit's mean is shrunk by what its jobs' noise may have made. Cards differ
        more than machines do, whose jobs go with the slowest of several.
        """
        units = Groups(self._past_units, len(self._shared))
        mean, jobs = units.mean(past), np.nan_to_num(units.sum(~np.isnan(past)))
        seen = jobs > 0
        within = float(np.nanvar(past - mean[self._past_units])) if seen.any() else 0.0
        noise = within / np.maximum(jobs, 1)
        between = np.zeros(len(mean))
        for group in (self._shared, ~self._shared):
            known = group & seen
            if known.any():
                between[group] = max(float(np.var(mean[known]) - np.mean(noise[known])), 0.0)
        trust = np.where(seen, between / np.maximum(between + noise, 1e-12), 0.0)
        return np.where(seen, trust * np.nan_to_num(mean), 0.0), between * (1 - trust)


def _log_ratio(own: Floats, usual: Floats) -> Floats:
    positive = (own > 0) & (usual > 0)
    return np.log(np.where(positive, own, np.nan) / np.where(positive, usual, np.nan))


def _difference(own: Floats, usual: Floats) -> Floats:
    return own - usual


def _text(column: pa.ChunkedArray[Any]) -> Names:
    values = column.cast(pa.string()).to_pandas().to_numpy(dtype=object)
    return np.where(pd.isna(values), "", values)
