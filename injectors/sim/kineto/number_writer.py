"""The way to write numbers: in machine code where numba is installed, else with numpy."""

from __future__ import annotations

from typing import Protocol

from injectors.sim.backends import Backend, wanted
from injectors.sim.kineto.digits import Bytes, NumpyWriter, Slots
from injectors.sim.noise import Ints


class NumberWriter(Protocol):
    """Writes numbers into the same places of one text after the other."""

    def write(self, text: Bytes, values: Ints) -> bool:
        """Write numbers, all >= 0 and fitting; returns whether NUL bytes were left."""


def number_writer(slots: Slots, backend: Backend = "auto") -> NumberWriter:
    """Return a writer; both backends write the same bytes.

    Raises:
        ImportError: The backend is "numba", which is not installed.
    """
    backend = wanted(backend)
    if backend != "numpy":
        try:
            from injectors.sim.kineto.digits_numba import NumbaWriter
        except ImportError:
            if backend == "numba":
                raise
        else:
            return NumbaWriter(slots)
    return NumpyWriter(slots)
