"""The gate's rules against a baseline that count cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from harness.gate_family import Settled
from harness.ruling import Ruling, Verdict

# The buckets of a case that was answered wholly right, by what was true of it.
RIGHT_BUCKETS = {"found", "quiet", "abstained_informed"}
_SHOWN = 10  # cases named in one ruling


@dataclass(frozen=True, eq=False)
class NewlyMisled:
    """At most so many cases mislead the result that did not mislead the baseline."""

    limit: int
    ours: pd.DataFrame
    theirs: pd.DataFrame
    statistical: bool = False

    def broken(self, error: float) -> bool:
        """Whether there are more; counted, whatever the error."""
        return len(self._new) > self.limit

    def ruling(self, settled: Settled) -> Ruling:
        """Count them and name them."""
        verdict: Verdict = "stop" if self.broken(settled.error) else "pass"
        rule = f"newly misled cases <= {self.limit}"
        return Ruling(rule, verdict, str(len(self._new)), name_cases(self._new))

    @property
    def _new(self) -> list[str]:
        new = self.ours["misled"].to_numpy(bool) & ~self.theirs["misled"].to_numpy(bool)
        return list(self.ours.loc[new, "case_id"])


@dataclass(frozen=True, eq=False)
class StayRight:
    """Named cases that the baseline got wholly right stay right."""

    cases: tuple[str, ...]
    ours: pd.DataFrame
    theirs: pd.DataFrame
    statistical: bool = False

    def broken(self, error: float) -> bool:
        """Whether one of them is not right any more, whatever the error."""
        return bool(self._lost)

    def ruling(self, settled: Settled) -> Ruling:
        """Name those that were lost."""
        verdict: Verdict = "stop" if self.broken(settled.error) else "pass"
        rule, found = f"{len(self.cases)} named cases stay right", f"{len(self._lost)} flipped"
        return Ruling(rule, verdict, found, name_cases(self._lost))

    @property
    def _lost(self) -> list[str]:
        named = self.ours["case_id"].isin(self.cases).to_numpy()
        lost = named & is_right(self.theirs).to_numpy() & ~is_right(self.ours).to_numpy()
        return list(self.ours.loc[lost, "case_id"])


def is_right(outcomes: pd.DataFrame) -> pd.Series[bool]:
    """Say for each case whether it was answered rightly and without a false finding."""
    return outcomes["bucket"].isin(RIGHT_BUCKETS) & ~outcomes["misled"].astype(bool)


def name_cases(cases: Sequence[str]) -> str:
    """List case ids, at most ten of them."""
    more = f" and {len(cases) - _SHOWN} more" if len(cases) > _SHOWN else ""
    return ", ".join(cases[:_SHOWN]) + more if cases else "none"
