"""What the floors are told: how often each cause and verdict stands in the train split."""

from __future__ import annotations

from typing import TypedDict


class Prior(TypedDict):
    """Shares of the train split, and the seed of draws.

    `causes` maps a cause to its number of faults, commonest first; `verdicts` maps healthy,
    faulty and undecidable to their number of cases.
    """

    causes: dict[str, int]
    verdicts: dict[str, int]
    seed: int
