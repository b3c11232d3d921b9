"""What breaks a fleet: which parameter of which segment, by how much, and where it can act."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from injectors.fleet.catalogue import RECIPES
from injectors.fleet.fleet import Fleet
from injectors.fleet.parameters import Edit, Parameter, matches
from injectors.fleet.settings import Grade, Injected
from injectors.fleet.world import World
from injectors.sim import noise

Range = tuple[int, int]
LEAST_JOBS = 8  # that a machine or GPU must have had for its name to be findable


@dataclass(frozen=True)
class FleetFault:
    """One cause: the parameters that it edits, in thousandths of their nominal value.

    Attributes:
        mechanism: What happens, and a source.
        edits: Parameter -> least and most factor of each grade.
        configs: Configurations in which it acts, None for all of them.
    """

    mechanism: str
    edits: Mapping[Parameter, Mapping[Grade, Range]]
    configs: tuple[str, ...] | None = None


def _grades(slight: Range, mild: Range, medium: Range, severe: Range) -> dict[Grade, Range]:
    return {"slight": slight, "mild": mild, "medium": medium, "severe": severe}


def _always(permille: int) -> dict[Grade, Range]:
    fixed = (permille, permille)
    return _grades(fixed, fixed, fixed, fixed)


FLEET_FAULTS: dict[str, FleetFault] = {
    "kernel_regression": FleetFault(
        "A version brings slower kernels for the same work (nccl#1997).",
        {"compute_efficiency": _grades((984, 992), (880, 905), (760, 830), (560, 660))},
    ),
    "nccl_tuning_regression": FleetFault(
        "A version reaches less bus bandwidth (nccl#1316: 50 to 37 GB/s).",
        {"bus_bandwidth": _grades((960, 980), (560, 620), (380, 460), (220, 280))},
    ),
    "thermal_throttle": FleetFault(
        "A machine's cooling heats its chips to their limit (Greyhound: 20 % slower).",
        {"thermal_resistance": _grades((1080, 1160), (1640, 1720), (1850, 2000), (2250, 2500))},
    ),
    "power_cap": FleetFault(
        "Boards are limited below what the load needs (dell-idrac#3: 150 of 300 W).",
        {"power_limit": _grades((978, 986), (790, 830), (640, 700), (500, 550))},
    ),
    "gpu_silicon_variability": FleetFault(
        "A replacement chip needs far more power for a clock (outliers of 1.5x, 2208.11035v3).",
        {"silicon_power": _grades((1010, 1025), (1500, 1600), (1800, 1950), (2200, 2400))},
    ),
    "pcie_downgrade": FleetFault(
        "A GPU's link trains at fewer lanes (Minder: 6.6 % of faults).",
        {"pcie_width": {"mild": (500, 500), "medium": (250, 250), "severe": (125, 125)}},
    ),
    "storage_fetch_stall": FleetFault(
        "A storage pool delivers fewer bytes a second (CoorDL: remote blobs, 20x).",
        {"storage_bandwidth": _grades((480, 560), (120, 140), (85, 100), (55, 65))},
    ),
    "dataloader_cpu_bound": FleetFault(
        "A loader image decodes without its fast library (20 % of jobs wait, tf.data).",
        {"decode_time": _grades((1080, 1150), (2300, 2500), (3000, 3400), (4200, 4800))},
    ),
    "recompile_limit_eager_fallback": FleetFault(
        "A version compiles each shape anew, up to 8, then runs uncompiled (TRT-LLM#6142).",
        {
            "shapes_marked_dynamic": _always(0),
            "eager_cost": _grades((40, 50), (450, 550), (900, 1000), (1500, 1700)),
        },
        ("ragged",),
    ),
    "vram_sysmem_spill": FleetFault(
        "A driver pages to the host where memory is nearly full (webui#11063, driver 536.67).",
        {"spill_above": _grades((985, 990), (918, 922), (898, 904), (870, 880))},
        ("wide",),
    ),
    "precision_fallback": FleetFault(
        "A version takes some float32 products off the tensor cores (pytorch's TF32 default).",
        {"tensor_kept": _grades((994, 998), (930, 945), (800, 850), (560, 640))},
        ("float32",),
    ),
}


def segment(world: World, injected: Injected, arm_key: int) -> dict[str, str]:
    """Choose the segment of a fault: a new version, or a machine, GPU or value drawn by key.

    Raises:
        ValueError: nothing in the fleet can have this fault.
    """
    fault, found = FLEET_FAULTS[injected.cause], dict[str, str]()
    for column in injected.columns:
        options = _options(world, column, fault.configs, found)
        if not options:
            raise ValueError(f"no {column} of this fleet can have {injected.cause}")
        drawn = noise.below(noise.keys(arm_key, "segment", column), len(options))
        found[column] = options[int(drawn[0])]
    return found


def edits(injected: Injected, where: Mapping[str, str], arm_key: int) -> tuple[Edit, ...]:
    """Return the edits of a fault; how strong they are is drawn within the grade."""
    fault, found = FLEET_FAULTS[injected.cause], []
    for parameter, grades in fault.edits.items():
        low, high = grades[injected.grade]
        drawn = noise.below(noise.keys(arm_key, "strength", parameter), high - low + 1)
        found.append(Edit(parameter, where, low + int(drawn[0])))
    if fault.configs and "config" not in where:
        raise ValueError(f"{injected.cause} must name its config, got {dict(where)}")
    return tuple(found)


def _options(
    world: World, column: str, configs: tuple[str, ...] | None, so_far: dict[str, str]
) -> list[str]:
    """Values of a column that can be named, in an order that only the fleet decides."""
    fleet = world.fleet
    if column in ("driver", "nccl", "framework", "image", "storage"):
        return [fleet.versions[column][2]]  # type: ignore[index]
    if column == "config" and configs:
        return [name for name in fleet.group.configs if name in configs and name in RECIPES]
    if column == "ranks":
        return [str(n) for n in fleet.group.ranks if n > 1]
    inside = matches(world.columns, so_far)
    values, counts = np.unique(world.columns[column][inside].astype(str), return_counts=True)
    enough = [str(v) for v, n in zip(values, counts, strict=True) if v and n >= LEAST_JOBS]
    if column == "gpu_serial":
        fresh = set(fleet.serials(True)[fleet.replaced])
        return [serial for serial in enough if serial in fresh]
    if column == "machine" and fleet.scattered:
        return [_coolest(fleet, enough)]
    return enough


def _coolest(fleet: Fleet, names: list[str]) -> str:
    """The machine whose chips need least power: a loss there hides among the others' scatter."""
    silicon = fleet.silicon_q16(True).reshape(fleet.group.machines, -1).sum(axis=1)
    order = [fleet.machines[int(number)] for number in np.argsort(silicon, kind="stable")]
    return next(name for name in order if name in names)
