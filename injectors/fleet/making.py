"""From an arm to a case: the tables of both periods and the label."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cases.bundle import RunData
from cases.schema import Decoy, Fault, Locus
from cases.truth import Truth, Witness
from injectors.build import split_of
from injectors.fleet.arms import Trial
from injectors.fleet.confounders import CONFOUNDERS
from injectors.fleet.describing import describe
from injectors.fleet.table import jobs_table
from injectors.fleet.withheld import WITHHELD, Withheld
from injectors.fleet.witnesses import witness_sql
from injectors.label_rule import shows
from injectors.rivals import BELOW_THRESHOLD
from injectors.sim import counterfactual
from injectors.sim.made import MadeCase

VERSION = 1  # raised when the same settings give other cases
SALT = 5  # of ids: chosen so that their letters tell nothing of the labels, see `cases audit`
# What is injected and costs too little is a decoy of this name; a slow pool that prefetching
# hides has one of its own.
OWN_NAMES = {"storage_fetch_stall": "hidden_slow_read"}


@dataclass(frozen=True)
class Making:
    """One arm on its way to a case.

    Attributes:
        trial: The arm's two periods.
        name: The group's name in labels.
        private_seed: What the key was drawn with, for the recipe.
    """

    trial: Trial
    name: str
    private_seed: int | None = None

    @property
    def case_id(self) -> str:
        """An opaque id that follows from the settings."""
        text = f"fleet {VERSION}.{SALT}/{self.trial.periods.key}/{self.trial.arm.name}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @cached_property
    def _withheld(self) -> Withheld:
        return WITHHELD[self.trial.periods.group.withheld]

    @cached_property
    def _seconds(self) -> dict[str, tuple[float, ...]]:
        return self.trial.seconds()

    def make(self, twin: str | None) -> MadeCase | str:
        """Make the case, or say with numbers why its label does not hold."""
        trial = self.trial
        try:
            verdict = counterfactual.judge(self._seconds, len(trial.injections))
        except ValueError as error:
            return str(error)
        if isinstance(verdict, str):
            return verdict
        if set(verdict.faults) - ({0} if trial.arm.fault else set()):
            return f"the weather itself must cost too little to count, got {verdict.joint}"
        ratio = self._shipped_ratio(verdict)
        if not shows("faulty" if verdict.faults else "healthy", ratio):
            return f"the shipped tables show a ratio of {ratio:.3f}, {verdict.joint}"
        hidden = self._withheld.columns
        reference = jobs_table(trial.earlier, trial.earlier.healthy, hidden)
        return MadeCase(
            info=describe(trial.later.world.fleet, self.case_id),
            tables={"jobs": jobs_table(trial.later, trial.shipped, hidden)},
            traces={},
            reference=RunData({"jobs": reference}),
            truth=self._truth(verdict, ratio, twin),
        )

    def _shipped_ratio(self, verdict: counterfactual.Outcome) -> float:
        """Of a faulty case the segment's loss; of a healthy one, against jobs alike before."""
        if verdict.faults:
            return verdict.joint.ratio
        return self.trial.later.ratio_to(self.trial.earlier, self.trial.shipped.step_ns)

    def _truth(self, verdict: counterfactual.Outcome, ratio: float, twin: str | None) -> Truth:
        causes = [cause for cause, _ in self.trial.injections]
        seeds = [self.trial.periods.key >> 1]
        return Truth(
            id=self.case_id,
            group=self.name,
            split=split_of(self.name),
            twin=twin,
            validation=counterfactual.record(seeds, causes, self._seconds, ratio),
            recipe=self._recipe(),
            **self._decided(verdict, twin),
        )

    def _decided(self, verdict: counterfactual.Outcome, twin: str | None) -> dict[str, Any]:
        """What the label says besides why."""
        faults, remaining = self._faults(verdict), self._withheld.candidates
        causes = [fault.cause for fault in faults]
        decoys = self._decoys(verdict, [*causes, *(remaining if causes else ())])
        found: dict[str, Any] = {"faults": faults, "decoys": decoys}
        if not causes:
            return {"verdict": "healthy", **found}
        if causes[0] in remaining:
            signals = self._withheld.signals
            return {
                "verdict": "undecidable",
                "candidates": remaining,
                "missing_signals": signals,
                **found,
            }
        sql, says = witness_sql(causes[0], list(self.trial.segment))
        witness = Witness(sql=sql, says=says, false_on=(twin,) if twin else ())
        return {"verdict": "faulty", "witness": witness, **found}

    def _faults(self, verdict: counterfactual.Outcome) -> tuple[Fault, ...]:
        injections = self.trial.injections
        shares = counterfactual.costs(self._seconds, len(injections), verdict.faults)
        return tuple(
            Fault(
                cause=injections[number][0],
                locus=Locus(scope="segment", segment=self.trial.segment),
                lost_fraction=share,
            )
            for number, share in zip(verdict.faults, shares, strict=True)
        )

    def _decoys(self, verdict: counterfactual.Outcome, present: Sequence[str]) -> tuple[Decoy, ...]:
        """Confounders, and a fault that cost too little.

        What is `present`, or may be, is no harmless look-alike: its name is left out.
        """
        arm = self.trial.arm
        seen = {name: CONFOUNDERS[name].looks_like for name in arm.confounders}
        if arm.fault and 0 in verdict.decoys:
            cause = arm.fault.cause
            seen[OWN_NAMES.get(cause, BELOW_THRESHOLD)] = (cause,)
        left = {name: [c for c in causes if c not in present] for name, causes in seen.items()}
        return tuple(
            Decoy(name=n, looks_like=tuple(causes)) for n, causes in left.items() if causes
        )

    def _recipe(self) -> dict[str, Any]:
        trial = self.trial
        return {
            "group": trial.periods.group.model_dump(mode="json", exclude={"arms"}),
            "arm": trial.arm.model_dump(mode="json"),
            "private_seed": self.private_seed,
            "edits": [vars(edit) for _, chosen in trial.injections for edit in chosen],
            "backend": f"fleet {VERSION}",
        }
