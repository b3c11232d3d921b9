"""How the quantile tables of the simulator's noise were made, once.

    python -m injectors.sim.noise_tables

writes noise_tables.txt, which is committed: a line each for i = 0 .. 2**TABLE_BITS - 1 with two
integers,

    round(2**16 * Phi^-1(p))    round(2**16 * -ln(1 - p))      p = (i + 1/2) / 2**TABLE_BITS

the midpoint quantiles of the standard normal and of the exponential distribution of mean 1, in
16 bits of fraction (Q16). Only this script calls the mathematics library, whose last digit
differs between machines; what reads the file is exact everywhere.
"""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

TABLE_BITS = 11
FILE = Path(__file__).with_name("noise_tables.txt")


def quantiles() -> list[tuple[int, int]]:
    """Return the normal and the exponential quantile of each entry, in Q16."""
    size = 2**TABLE_BITS
    middles = [(i + 0.5) / size for i in range(size)]
    normal = NormalDist().inv_cdf
    return [(round(2**16 * normal(p)), round(2**16 * -math.log1p(-p))) for p in middles]


def read_tables() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read the committed tables: normal and exponential quantiles, int64 of 2**TABLE_BITS each."""
    lines = FILE.read_text(encoding="ascii").splitlines()
    table = np.array([line.split() for line in lines], dtype=np.int64)
    if table.shape != (2**TABLE_BITS, 2):
        raise ValueError(f"{FILE.name} must hold {2**TABLE_BITS} pairs, got shape {table.shape}")
    normal, exponential = table[:, 0].copy(), table[:, 1].copy()
    normal.setflags(write=False)
    exponential.setflags(write=False)
    return normal, exponential


if __name__ == "__main__":
    text = "".join(f"{normal} {exponential}\n" for normal, exponential in quantiles())
    FILE.write_text(text, encoding="ascii")
