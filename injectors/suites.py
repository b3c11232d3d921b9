"""Suites that are built on demand, by simulation: the same content everywhere.

    build("simulated_smoke", out) -> out/suites/simulated_smoke and out/labels/simulated_smoke

A suite is a list of groups, see injectors.building.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cases.bundle import Suite
from cases.errors import HarnessError, InputError, shorten
from cases.schema import SuiteInfo
from injectors.build import Places
from injectors.building import Buildable, LabelsKind, Progress, build_groups, silent


@dataclass(frozen=True)
class SuitePlan:
    """A suite that can be built: its title and its groups under a private seed, or the public."""

    title: str
    groups: Callable[[int | None], Sequence[Buildable]]


def _smoke(private_seed: int | None) -> Sequence[Buildable]:
    from injectors.sim.suite import smoke

    return smoke(private_seed)


def _core(private_seed: int | None) -> Sequence[Buildable]:
    from injectors.sim.suite import core

    return core(private_seed)


def _fleet(private_seed: int | None) -> Sequence[Buildable]:
    from injectors.fleet.suite import groups

    return groups(private_seed)


def _own(matrix: Path, private_seed: int | None) -> Sequence[Buildable]:
    from injectors.sim.matrix import read
    from injectors.sim.suite import whole

    return whole(read(matrix), private_seed, matrix)


SUITES: dict[str, SuitePlan] = {
    "simulated_smoke": SuitePlan("Simulated jobs, a few of each kind", _smoke),
    "simulated_core": SuitePlan("Simulated jobs on up to 1,024 GPUs", _core),
    "simulated_fleet": SuitePlan("Simulated fleets with a regression in a segment", _fleet),
}
MATRIX_SUFFIXES = (".yaml", ".yml")


def plan_of(name: str) -> SuitePlan:
    """Return a suite's plan, by its name or by the file of a matrix of one's own.

    Raises:
        InputError: There is no such suite; those there are are listed.
    """
    path = Path(name)
    if path.suffix in MATRIX_SUFFIXES:
        return SuitePlan(f"Simulated jobs of {path.stem}", partial(_own, path))
    if name not in SUITES:
        raise InputError(
            f"must be one of {sorted(SUITES)} or the YAML file of a matrix",
            where="suite",
            found=name,
        )
    return SUITES[name]


def suite_places(out: Path, folder: str) -> Places:
    """Return the folders of a built suite below `out`, where `find_suite` looks for them."""
    return Places(out / "suites" / folder, out / "labels" / folder)


def build(
    name: str,
    out: Path,
    private_seed: int | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> SuiteInfo:
    """Build a suite, or what is missing of it.

    Args:
        name: A name of SUITES, or the YAML file of a matrix (see injectors.sim.matrix).
        out: Folder that gets `suites/<name>` and `labels/<name>`.
        private_seed: Makes a suite nobody has seen, called `<name>_private`.
        jobs: Processes; one a core by default.
        progress: Told the phase, how much of it is done, and of how much.

    Raises:
        InputError: There is no such suite, or `out` can't be written to.
        HarnessError: There is no room for it, or no case could be made.
    """
    plan = plan_of(name)
    stem = Path(name).stem
    folder = stem if private_seed is None else f"{stem}_private"
    target = suite_places(out, folder)
    kind: LabelsKind = "public" if private_seed is None else "private_seed"
    groups = plan.groups(private_seed)
    lines = build_groups(groups, target, folder, plan.title, kind, jobs, progress)
    if not any(line.made for line in lines):
        reasons = [reason for line in lines for reason in line.refused.values()]
        why = shorten(reasons[0]) if reasons else "it has no groups"
        raise HarnessError(f"{name} must make at least one case ({why})")
    return Suite.open(target.cases).info
