"""The parameters that a fault may edit: for which jobs, and by what factor.

Nothing else is ever changed by a fault, neither a draw nor a time that came out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from injectors.fleet.fleet import Texts
from injectors.sim import noise
from injectors.sim.noise import Ints

Parameter = Literal[
    "compute_efficiency",  # of kernels that are not on the tensor cores' critical path
    "tensor_kept",  # share of the products that stay on the tensor cores
    "shapes_marked_dynamic",  # 0: the compiler specialises on every input shape
    "eager_cost",  # what a step costs more once the compiler has given up
    "spill_above",  # share of device memory beyond which the driver pages to the host
    "silicon_power",  # power that the chip needs at a clock
    "power_limit",
    "thermal_resistance",  # degrees that a watt heats the chip
    "inlet_excess",  # how far the air is warmer than 20 C
    "pcie_width",
    "bus_bandwidth",  # that the communication library reaches
    "storage_bandwidth",
    "decode_time",  # CPU time of a sample in the loader
]
Columns = Mapping[str, Texts | Ints]


@dataclass(frozen=True)
class Edit:
    """One parameter of one segment, multiplied by a factor.

    Attributes:
        where: Column -> value; all must agree, none means every job.
        permille: The factor, in thousandths.
    """

    parameter: Parameter
    where: Mapping[str, str]
    permille: int


def matches(columns: Columns, where: Mapping[str, str]) -> NDArray[np.bool_]:
    """Tell which rows have all the values that `where` names (numbers as text)."""
    length = len(next(iter(columns.values())))
    found = np.ones(length, dtype=bool)
    for column, value in where.items():
        own = columns[column]
        found &= own == (int(value) if own.dtype.kind == "i" else value)
    return found


def factor_q16(columns: Columns, parameter: Parameter, edits: Sequence[Edit]) -> Ints:
    """Return by what factor a parameter differs from its nominal value, for each row."""
    length = len(next(iter(columns.values())))
    found = np.full(length, noise.ONE_Q16, dtype=np.int64)
    for edit in edits:
        if edit.parameter == parameter:
            by = edit.permille * noise.ONE_Q16 // 1000
            found = np.where(matches(columns, edit.where), noise.scale_q16(found, by), found)
    return found


def divide_q16(values: Ints, by_q16: Ints) -> Ints:
    """Divide by Q16 factors, rounded down; `values` must stay below 2**47."""
    return np.asarray((values << 16) // by_q16)
