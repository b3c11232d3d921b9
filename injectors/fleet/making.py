"""From an arm of a group to a case: both periods, the label, and the public description."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cases.bundle import RunData
from cases.schema import Decoy, Fault, Locus
from cases.truth import Truth, Witness, set_name
from injectors.build import split_of
from injectors.fleet.alike import ratio_to_alike
from injectors.fleet.confounders import CONFOUNDERS, Setting, setting
from injectors.fleet.describing import describe
from injectors.fleet.faults import LEAST_JOBS, edits, segment
from injectors.fleet.fleet import Fleet
from injectors.fleet.parameters import Edit, matches
from injectors.fleet.settings import Arm, FleetGroup
from injectors.fleet.steps import Steps, run
from injectors.fleet.table import jobs_table
from injectors.fleet.withheld import WITHHELD
from injectors.fleet.witnesses import witness_sql
from injectors.fleet.world import World
from injectors.label_rule import shows
from injectors.sim import counterfactual, noise
from injectors.sim.made import MadeCase

WEATHER = "thermal_throttle"  # what a warm week would be called, did it cost anything
BELOW_THRESHOLD = "below_threshold"
VERSION = 1  # raised when the same settings give other cases


@dataclass(frozen=True)
class Making:
    """One arm on its way to a case.

    Attributes:
        group: The group's settings.
        arm: The arm.
        key: The group's key.
        name: The group's name in labels.
        private_seed: What the key was drawn with, for the recipe.
    """

    group: FleetGroup
    arm: Arm
    key: int
    name: str
    private_seed: int | None = None

    @cached_property
    def _arm_key(self) -> int:
        return noise.key(self.key, "arm", self.arm.name)

    @cached_property
    def _setting(self) -> Setting:
        return setting(self.group, self.arm, Fleet(self.group, self.key))

    @cached_property
    def fleet(self) -> Fleet:
        """The machines."""
        return Fleet(self.group, self.key, self._setting.scattered)

    @cached_property
    def earlier(self) -> World:
        """The reference period."""
        return World(self.fleet, self._setting.traffic[0], later=False)

    @cached_property
    def later(self) -> World:
        """The period that is asked about."""
        return World(self.fleet, self._setting.traffic[1], later=True)

    @cached_property
    def segment(self) -> dict[str, str]:
        """The fault's segment; all jobs where there is none."""
        if self.arm.fault is None:
            return {}
        return segment(self.fleet, self.later, self.arm.fault, self._arm_key)

    @cached_property
    def injections(self) -> tuple[tuple[str, tuple[Edit, ...]], ...]:
        """What is injected, the fault first: causes and their edits."""
        found = []
        if self.arm.fault:
            own = edits(self.arm.fault, self.segment, self._arm_key)
            found.append((self.arm.fault.cause, own))
        if self._setting.weather:
            found.append((WEATHER, self._setting.weather))
        return tuple(found)

    def steps(self, injected: Sequence[int]) -> Steps:
        """Time the later period's steps with some of the injections."""
        chosen = [edit for number in injected for edit in self.injections[number][1]]
        return run(self.later, [*self._setting.gains, *chosen])

    @cached_property
    def affected(self) -> NDArray[np.bool_]:
        """Jobs of the segment, whose steps the label compares."""
        return matches(self.later.columns, self.segment)

    @cached_property
    def seconds(self) -> dict[str, tuple[float, ...]]:
        """Mean seconds of a step of the segment's jobs under every set of the injections."""
        numbers = range(len(self.injections))
        return {
            set_name(chosen): (_mean_s(self.steps(chosen), self.affected),)
            for size in range(len(self.injections) + 1)
            for chosen in combinations(numbers, size)
        }

    def make(self, twin: str | None) -> MadeCase | str:
        """Make the case, or say with numbers why its label does not hold."""
        try:
            verdict = counterfactual.judge(self.seconds, len(self.injections))
        except ValueError as error:
            return str(error)
        if isinstance(verdict, str):
            return verdict
        steps = self.steps(range(len(self.injections)))
        ratio = self._shipped_ratio(steps, verdict)
        if not shows("faulty" if verdict.faults else "healthy", ratio):
            return f"the shipped tables show a ratio of {ratio:.3f}, {verdict.joint}"
        withheld = WITHHELD[self.group.withheld]
        reference = jobs_table(self.earlier, run(self.earlier), withheld.columns)
        return MadeCase(
            info=describe(self.fleet, self.case_id),
            tables={"jobs": jobs_table(self.later, steps, withheld.columns)},
            traces={},
            reference=RunData({"jobs": reference}),
            truth=self._truth(verdict, ratio, twin),
        )

    @property
    def case_id(self) -> str:
        """An opaque id that follows from the settings."""
        text = f"fleet {VERSION}/{self.key}/{self.arm.name}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _truth(self, verdict: counterfactual.Outcome, ratio: float, twin: str | None) -> Truth:
        causes = [cause for cause, _ in self.injections]
        seeds = [self.key >> 1]
        return Truth(
            id=self.case_id,
            group=self.name,
            split=split_of(self.name),
            twin=twin,
            validation=counterfactual.record(seeds, causes, self.seconds, ratio),
            recipe=self._recipe(),
            **self._decided(verdict, twin),
        )

    def _decided(self, verdict: counterfactual.Outcome, twin: str | None) -> dict[str, Any]:
        """What the label says besides why."""
        if not verdict.faults:
            return {"verdict": "healthy", "decoys": self._decoys(verdict, ())}
        faults, withheld = self._faults(verdict), WITHHELD[self.group.withheld]
        causes = [fault.cause for fault in faults]
        if causes[0] in withheld.candidates:
            return {
                "verdict": "undecidable",
                "faults": faults,
                "decoys": self._decoys(verdict, withheld.candidates),
                "candidates": withheld.candidates,
                "missing_signals": withheld.signals,
            }
        sql, says = witness_sql(causes[0], list(self.segment))
        return {
            "verdict": "faulty",
            "faults": faults,
            "decoys": self._decoys(verdict, causes),
            "witness": Witness(sql=sql, says=says, false_on=(twin,) if twin else ()),
        }

    def _faults(self, verdict: counterfactual.Outcome) -> tuple[Fault, ...]:
        shares = counterfactual.costs(self.seconds, len(self.injections), verdict.faults)
        locus = Locus(scope="segment", segment=self.segment)
        return tuple(
            Fault(cause=self.injections[number][0], locus=locus, lost_fraction=share)
            for number, share in zip(verdict.faults, shares, strict=True)
        )

    def _decoys(self, verdict: counterfactual.Outcome, present: Sequence[str]) -> tuple[Decoy, ...]:
        """Confounders, and what was injected and cost too little.

        What is `present`, or may be, is no harmless look-alike: its name is left out.
        """
        seen = {name: CONFOUNDERS[name].looks_like for name in self.arm.confounders}
        if self.arm.fault and 0 in verdict.decoys:
            seen[BELOW_THRESHOLD] = (self.arm.fault.cause,)
        left = {name: [c for c in causes if c not in present] for name, causes in seen.items()}
        return tuple(
            Decoy(name=n, looks_like=tuple(causes)) for n, causes in left.items() if causes
        )

    def _shipped_ratio(self, steps: Steps, verdict: counterfactual.Outcome) -> float:
        """Of a faulty case the segment's loss; of a healthy one, against jobs alike before."""
        if verdict.faults:
            return verdict.joint.ratio
        return ratio_to_alike(self.later, steps.step_ns, self.earlier, run(self.earlier).step_ns)

    def _recipe(self) -> dict[str, Any]:
        return {
            "group": self.group.model_dump(mode="json", exclude={"arms"}),
            "arm": self.arm.model_dump(mode="json"),
            "private_seed": self.private_seed,
            "segment": self.segment,
            "edits": [vars(edit) for _, chosen in self.injections for edit in chosen],
            "backend": f"fleet {VERSION}",
        }


def _mean_s(steps: Steps, chosen: NDArray[np.bool_]) -> float:
    count = int(np.count_nonzero(chosen))
    if count < LEAST_JOBS:
        raise ValueError(f"the segment must have at least {LEAST_JOBS} jobs, got {count}")
    # One correctly rounded division of whole numbers: the same on every machine.
    return int(steps.step_ns[chosen].sum()) / (count * 10**9)
