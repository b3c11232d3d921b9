"""A simulated case before it is written: its public half and its label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from cases.bundle import RunData
from cases.schema import CaseInfo
from cases.truth import Truth


@dataclass(frozen=True)
class MadeCase:
    """One case as it will be shipped.

    Attributes:
        info: case.json.
        tables: Signal tables by name.
        traces: Gzip-compressed Kineto traces by rank.
        reference: The reference run, None for an audit.
        truth: The label; its witness's `false_on` lists the twin only, rivals are added when the
            suite is finished.
    """

    info: CaseInfo
    tables: Mapping[str, pd.DataFrame]
    traces: Mapping[int, bytes]
    reference: RunData | None
    truth: Truth


@dataclass(frozen=True)
class MadeGroup:
    """All that came of one group: its cases, and what was refused with the reason."""

    name: str
    cases: tuple[MadeCase, ...]
    refused: Mapping[str, str]
