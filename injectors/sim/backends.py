"""Which backend simulates where nobody says: machine code if numba is installed, else numpy.

Both give the same bits. `EVALHARNESS_SIM_BACKEND` (auto, numba, numpy) chooses for a whole build.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Literal

from cases.errors import ScenarioError

Backend = Literal["auto", "numba", "numpy"]
BACKENDS: tuple[Backend, ...] = ("auto", "numba", "numpy")
VARIABLE = "EVALHARNESS_SIM_BACKEND"


def wanted(backend: str = "auto") -> Backend:
    """Return the backend itself or, for "auto", what the environment variable says.

    Raises:
        ValueError: There is no such backend.
    """
    if backend == "auto":
        return check_wanted()
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {BACKENDS}, got {backend!r}")
    return backend


def check_wanted() -> Backend:
    """Return what the environment variable says.

    Raises:
        ScenarioError: It names no backend, or one that is not installed.
    """
    found = os.environ.get(VARIABLE) or "auto"
    if found not in BACKENDS:
        raise ScenarioError(f"must be one of {list(BACKENDS)}", where=VARIABLE, found=found)
    if found == "numba" and find_spec("numba") is None:
        must = "needs numba, which evalharness[sim] installs"
        raise ScenarioError(must, where=VARIABLE, found=found)
    return found
