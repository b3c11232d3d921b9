"""What can act in a job of the matrix: injections at a grade, hidden faults at any strength."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cases.documents import parse_record
from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.faults.base import Fault, Injection
from injectors.scenario import Arm, Scenario, Withheld
from injectors.sim import noise
from injectors.sim.aiming import Aim, Dial
from injectors.sim.matrix import Matrix

INJECTIONS: dict[str, type[Injection]] = {**FAULTS, **DECOYS}
Place = Callable[..., dict[str, Any]]  # injectors.sim.grades.placed in one job


def placed_arm(
    what: str, grade: Mapping[str, Any], bare: Scenario, place: Place, where: str | Path
) -> Arm | None:
    """Return the arm of a grade; None where the job has no such place or can't show it.

    Raises:
        RecordError: the grade breaks the rules of what it is of; `where` is the matrix's file.
    """
    try:
        parameters = place(grade, what=what)
    except LookupError:
        return None
    kind = "fault" if what in FAULTS else "decoy"
    document = {kind: what, "parameters": parameters}
    arm = parse_record(document, Arm, where=f"{where}: a grade of {what}")
    return arm if _shows(arm.injection(), bare) else None


def _shows(injection: Injection, bare: Scenario) -> bool:
    """Whether the job can show it; without a reference run only what is told by itself."""
    audit = bare.question == "audit"
    if audit and isinstance(injection, Fault) and injection.audit_witness() is None:
        return False
    return injection.simulated_misfit(bare) is None


def dials(
    matrix: Matrix,
    pattern: Withheld,
    bare: Scenario,
    configuration: str,
    place: Place,
    where: str | Path,
) -> dict[str, Dial]:
    """Return how strong each of a pattern's causes can be, of those that can act in a job."""
    found = {}
    for cause in matrix.withheld[pattern]:
        hidden = matrix.dial(cause, configuration) if INJECTIONS[cause].fits(bare) else None
        if hidden is None:
            continue
        ends = (placed_arm(cause, end, bare, place, where) for end in (hidden.mild, hidden.strong))
        mild, strong = ends
        if mild is not None and strong is not None:
            found[cause] = Dial(mild, strong, hidden.coarse)
    return found


def aim_at(matrix: Matrix, arm: str, cause: str, of: Mapping[str, Dial], key: int) -> Aim:
    """Aim an arm of a group at the slowdown that all of its candidates would have."""
    least, most = matrix.hidden_slowdown
    slowdown = least + (most - least) * (noise.key(key, "slowdown") >> 48) / 65536
    rivals = tuple(dial for rival, dial in of.items() if rival != cause)
    return Aim(arm, slowdown, of[cause], rivals)
