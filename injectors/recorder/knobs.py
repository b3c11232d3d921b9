"""Shared-memory settings that a running job reads at every use.

The recorder turns a knob; ranks and loader workers, forked from it, see the new value at
once. Healthy and faulty runs execute the same code with other values, so function and range
names in traces are the same.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

# name -> value in a healthy job
DEFAULTS: dict[str, float] = {
    "storage_bytes_per_s": float("inf"),  # shared bandwidth of the storage that files lie on
    "decode_passes": 1.0,  # augmentation passes of the decoder
    "eager_layers": 0.0,  # layers whose elementwise chains run op by op
    "checkpoint_every": 0.0,  # steps between checkpoints; 0: none
    "cold_start": 0.0,  # 1: the next recorded window begins with the job's first step
}
# Slots behind the knobs that processes share for their own book-keeping.
STORAGE_FREE_AT = len(DEFAULTS)
SLOTS = len(DEFAULTS) + 1


class Knobs:
    """A row of doubles in anonymous shared memory, inherited through fork."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SLOTS * 8)
        self._cells = (ctypes.c_double * SLOTS).from_buffer(self._memory)
        self._index = {name: i for i, name in enumerate(DEFAULTS)}
        for name, value in DEFAULTS.items():
            self._cells[self._index[name]] = value

    def __getitem__(self, name: str) -> float:
        return float(self._cells[self._index[name]])

    def __setitem__(self, name: str, value: float) -> None:
        self._cells[self._index[name]] = value

    def slot(self, index: int) -> float:
        """Read a book-keeping slot."""
        return float(self._cells[index])

    def set_slot(self, index: int, value: float) -> None:
        """Write a book-keeping slot; callers hold their own lock."""
        self._cells[index] = value

    @contextmanager
    def turned(self, **values: float) -> Iterator[None]:
        """Set knobs for the length of a block, and back on every exit."""
        before = {name: self[name] for name in values}
        try:
            for name, value in values.items():
                self[name] = value
            yield
        finally:
            for name, value in before.items():
                self[name] = value
