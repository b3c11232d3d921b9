"""Taking a suspected cost away from a healthy job, to see whether it had cost anything."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from pydantic import model_validator

from cases.schema import CauseName
from injectors.faults.base import Injection, Run
from injectors.recorder.knobs import DEFAULTS


class Ablation(Injection):
    """How the job runs without what `cause` would cost.

    `knobs` are turned while it runs; `started_with` are settings and `workload` parameters of
    a job of its own. The computation must stay the same, or the comparison says nothing.
    """

    cause: CauseName
    knobs: dict[str, float] = {}
    started_with: dict[str, Any] = {}
    workload: dict[str, Any] = {}

    @model_validator(mode="after")
    def _known(self) -> Ablation:
        if strangers := sorted(set(self.knobs) - set(DEFAULTS)):
            raise ValueError(f"unknown knobs {strangers}, must be among {sorted(DEFAULTS)}")
        if not (self.knobs or self.started_with or self.workload):
            raise ValueError("an ablation must change something")
        return self

    def settings(self) -> dict[str, Any]:
        """Settings and workload parameters that the ablated job is started with."""
        return self.started_with | ({"workload": self.workload} if self.workload else {})

    def inject(self, run: Run) -> AbstractContextManager[None]:
        """Turn the knobs."""
        return run.knobs.turned(**self.knobs)
