"""What can make a segment of a fleet slower: where each cause sits, and by what signs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from harness.diagnosers.rules.fleets.search import Search, Segment

State = Literal["shown", "open", "excluded"]

# A part is where the time went if at least half of what the step grew is in it.
MOST = 0.5
# A clock or a limit: cards' own clocks differ by some per cent, of which their past takes most
# away. A clock that is slower by less costs less than is blamed.
CHANGED = 0.03
# Work of the tensor cores in cycles. That of jobs alike is equal; what is read is rounded to a
# tenth of some tens of per cent. Products elsewhere take several times as long (8 times in single
# precision on an A100), so that a loss worth blaming moves a few per cent of them.
LESS_TENSOR = 0.01
# A loader's own time must have grown enough to make jobs wait that did not wait before.
LONGER = math.log(1.2)
# Paging moves gigabytes where batches take megabytes: twice the bytes is far from either.
MORE_BYTES = math.log(2)
# PCIe links train to powers of two: the next width below is half.
FEWER_LANES = math.log(2) / 2
# Torch gives up on a function when it was compiled for the eighth time; one more than usual in
# each job is no accident, since runs alike recompile alike.
MORE_COMPILED = 1.0
OFTEN = 0.5  # of a segment's jobs: thermal bits in half of them more than in others


@dataclass(frozen=True)
class Sign:
    """A fact that must be at least, or less than, a bound."""

    fact: str
    bound: float
    least: bool = True

    def holds(self, facts: dict[str, float]) -> bool | None:
        """None where the fact is not known."""
        value = facts[self.fact]
        return None if math.isnan(value) else (value >= self.bound) == self.least


@dataclass(frozen=True)
class FleetCause:
    """A cause, the columns that its segment may name, and its signs.

    Attributes:
        name: Its name in the taxonomy.
        owners: Combinations of columns that may be its segment.
        grew: The column of which jobs inside the segment have more (`-`: less) in the same
            proportion, whatever share of their step it is.
        signs: All must hold; the first decides.
        rivals: Causes that look alike -> why it is none of them.
        cites: Facts that are its evidence, beside the slow-down.
    """

    name: str
    owners: tuple[tuple[str, ...], ...]
    grew: str
    signs: tuple[Sign, ...]
    rivals: tuple[tuple[str, str], ...]
    cites: tuple[str, ...]

    def state(self, facts: dict[str, float]) -> State:
        """Whether the facts show it, leave it open (some are unknown), or exclude it."""
        held = [sign.holds(facts) for sign in self.signs]
        if False in held:
            return "excluded"
        return "open" if None in held else "shown"

    def unknown(self, facts: dict[str, float]) -> list[str]:
        """Columns that would decide, and are not there."""
        facts_unknown = [sign.fact for sign in self.signs if math.isnan(facts[sign.fact])]
        return [column for fact in facts_unknown for column in COLUMNS[fact]]


def owned(*changes: str, by: tuple[str, ...] = ()) -> tuple[tuple[str, ...], ...]:
    """Each change alone and with each context."""
    return tuple((change, *more) for change in changes for more in ((), *((b,) for b in by)))


# The columns that a fact is of.
COLUMNS = {
    "computing": ("compute_ns",),
    "communicating": ("communication_ns",),
    "copying": ("copy_ns",),
    "waiting": ("data_wait_ns",),
    "slower_clock": ("sm_clock_mhz",),
    "tensor_work": ("tensor_active_percent",),
    "recompiles": ("recompiles",),
    "received": ("pcie_rx_bytes_per_s",),
    "read": ("loader_read_ns",),
    "prepared": ("loader_cpu_ns",),
    "limit": ("power_limit_w", "power_w"),
    "hot": ("event_reasons", "temperature_c"),
    "lanes": ("pcie_width",),
}
PARTS = ("computing", "communicating", "copying", "waiting")  # facts that are shares of a step
_COMPUTES = (Sign("computing", MOST), Sign("slower_clock", CHANGED, least=False))
_AT_ITS_CLOCK = ("thermal_throttle", "clocks are what they were")
_CLOCKED = Sign("slower_clock", CHANGED)
_COOL, _LIMIT_KEPT = Sign("hot", OFTEN, least=False), Sign("limit", -CHANGED)
CAUSES: tuple[FleetCause, ...] = (
    FleetCause(
        "pcie_downgrade",
        (("gpu_serial",), ("machine",)),
        "-pcie_width",
        (Sign("lanes", -FEWER_LANES, least=False), Sign("copying", MOST)),
        (("gpu_silicon_variability", "copies take the time, over fewer lanes"),),
        cites=("lanes", "copying"),
    ),
    FleetCause(
        "thermal_throttle",
        (("machine",), ("gpu_serial",)),
        "-sm_clock_mhz",
        (Sign("hot", OFTEN), _CLOCKED),
        (("power_cap", "thermal bits are set, and the limit is what it was"),),
        cites=("hot", "slower_clock"),
    ),
    FleetCause(
        "power_cap",
        (("machine",), ("gpu_serial",)),
        "-sm_clock_mhz",
        (Sign("limit", -CHANGED, least=False), _COOL, _CLOCKED),
        (
            ("thermal_throttle", "no thermal bit is set"),
            ("gpu_silicon_variability", "the enforced limit is lower"),
        ),
        cites=("limit", "slower_clock"),
    ),
    FleetCause(
        "gpu_silicon_variability",
        (("gpu_serial",),),
        "-sm_clock_mhz",
        (_CLOCKED, _COOL, _LIMIT_KEPT),
        (
            ("thermal_throttle", "no thermal bit is set"),
            ("power_cap", "the limit is what it was"),
        ),
        cites=("slower_clock",),
    ),
    FleetCause(
        "recompile_limit_eager_fallback",
        owned("framework", by=("config",)),
        "recompiles",
        (Sign("recompiles", MORE_COMPILED), *_COMPUTES),
        (("kernel_regression", "jobs are compiled anew more often than jobs alike were"),),
        cites=("recompiles", "computing"),
    ),
    FleetCause(
        "vram_sysmem_spill",
        owned("driver", by=("config",)),
        "seconds",
        (Sign("received", MORE_BYTES), *_COMPUTES, Sign("copying", MOST, least=False)),
        (("kernel_regression", "far more bytes come over PCIe, though copies are no longer"),),
        cites=("received", "computing"),
    ),
    FleetCause(
        "precision_fallback",
        (("framework", "config"),),
        "-tensor_work",
        (
            Sign("tensor_work", -LESS_TENSOR, least=False),
            *_COMPUTES,
            Sign("recompiles", MORE_COMPILED, least=False),
        ),
        (("kernel_regression", "the tensor cores have less to do, not the same at less speed"),),
        cites=("tensor_work", "computing"),
    ),
    FleetCause(
        "kernel_regression",
        owned("driver", "framework", by=("config", "model", "gpu_model")),
        "cycles",
        (
            *_COMPUTES,
            Sign("tensor_work", -LESS_TENSOR),
            Sign("recompiles", MORE_COMPILED, least=False),
            Sign("received", MORE_BYTES, least=False),
        ),
        (
            ("precision_fallback", "the tensor cores have as much to do"),
            ("recompile_limit_eager_fallback", "nothing is compiled more often"),
            _AT_ITS_CLOCK,
        ),
        cites=("computing",),
    ),
    FleetCause(
        "nccl_tuning_regression",
        owned("nccl", by=("ranks", "model", "gpu_model")),
        "communication_ns",
        (Sign("communicating", MOST),),
        (("kernel_regression", "the time is in collectives, computing takes what it did"),),
        cites=("communicating",),
    ),
    FleetCause(
        "storage_fetch_stall",
        owned("storage", by=("model",)),
        "loader_read_ns",
        (Sign("waiting", MOST), Sign("read", LONGER)),
        (("dataloader_cpu_bound", "workers read longer, they need no more CPU time"),),
        cites=("read",),
    ),
    FleetCause(
        "dataloader_cpu_bound",
        owned("image", by=("model", "config")),
        "loader_cpu_ns",
        (Sign("waiting", MOST), Sign("prepared", LONGER)),
        (("storage_fetch_stall", "workers need more CPU time, reads are no longer"),),
        cites=("prepared",),
    ),
)


def facts_of(search: Search, segment: Segment) -> dict[str, float]:
    """What a segment's jobs differ by from others, each compared with jobs alike."""
    fleet = search.fleet
    step = search.change(fleet.growth("step_ns"), segment)
    differing = {
        "slower_clock": "sm_clock_mhz",
        "tensor_work": "tensor_work",
        "recompiles": "recompiles",
        "received": "received",
        "read": "loader_read_ns",
        "prepared": "loader_cpu_ns",
        "limit": "power_limit_w",
        "hot": "hot",
        "lanes": "pcie_width",
    }
    shares = {f: search.change(fleet.growth(COLUMNS[f][0]), segment) / step for f in PARTS}
    facts = {fact: search.change(fleet.compared(c).now, segment) for fact, c in differing.items()}
    return {**shares, **facts, "slower_clock": -facts["slower_clock"]}
