"""Asking a tool of others about one case: what all adapters share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases.case import Case
from cases.schema import Diagnosis
from harness.diagnosers.third_party import PYTHON
from harness.diagnosers.third_party.calling import call_tool

Request = dict[str, Any]


def traces_of(case: Case) -> Request:
    """Name the files of all traces of a case by rank: what a tool is given that reads traces."""
    return {"traces": {str(rank): str(case.kineto_path(rank)) for rank in case.trace_ranks}}


@dataclass(frozen=True)
class Adapter:
    """A diagnoser that asks a tool and translates what it says.

    Attributes:
        module: The tool's folder.
        version: Of the adapter; it grows with every change that can change an answer.
        causes: Names of the taxonomy that it can give, causes or coarser ones.
        needs: What the tool cannot do without, see `harness.answering.Needs`.
        translate: From the driver's JSON to an answer; raises where that is none.
        inputs: What the driver is asked about a case, as a JSON value.
    """

    module: str
    version: int
    causes: tuple[str, ...]
    translate: Callable[[Any], Diagnosis]
    needs: Mapping[str, Any] = field(default_factory=dict)
    inputs: Callable[[Case], Request] = traces_of

    def __call__(self, case: Case, settings: Mapping[str, str]) -> Diagnosis:
        """Ask about a case.

        Args:
            case: The case.
            settings: Where the tool's interpreter is.

        Raises:
            ToolError: the tool crashed or said nothing readable.
        """
        driver = Path(__file__).parent / self.module / "driver.py"
        return self.translate(call_tool(Path(settings[PYTHON]), driver, self.inputs(case)))
