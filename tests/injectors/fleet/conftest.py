from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import pandas as pd
import pytest

from injectors.fleet.arms import Trial
from injectors.fleet.period import Periods
from injectors.fleet.settings import Arm, FleetGroup, Injected
from injectors.fleet.suite import groups
from injectors.sim.made import MadeCase, MadeGroup


@lru_cache
def _made(name: str) -> MadeGroup:
    return next(group for group in groups() if group.name == name).make()


@pytest.fixture
def case_of() -> Callable[[str, str], MadeCase]:
    """A case of the public suite by its group and arm."""

    def find(group: str, arm: str) -> MadeCase:
        cases = _made(group).cases
        return next(case for case in cases if case.truth.recipe["arm"]["name"] == arm)

    return find


@pytest.fixture
def tables_of(case_of) -> Callable[[str, str], tuple[pd.DataFrame, pd.DataFrame]]:
    """The jobs of a case and of its reference period."""

    def find(group: str, arm: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        case = case_of(group, arm)
        assert case.reference is not None
        return case.tables["jobs"], case.reference.tables["jobs"]

    return find


@pytest.fixture(scope="session")
def settings() -> FleetGroup:
    """A fleet in which every fault can act."""
    return FleetGroup(
        name="try",
        machines=8,
        jobs=800,
        cards=("A100-PCIE-40GB", "L40S"),
        models=("gpt-350m", "vit-l", "resnet-50"),
        configs=("base", "wide", "float32", "ragged", "offload"),
        arms=(Arm(name="plain"), Arm(name="other")),
    )


@pytest.fixture(scope="session")
def periods(settings: FleetGroup) -> Periods:
    return Periods(settings, 20_240_501)


@pytest.fixture
def trial(periods: Periods) -> Callable[..., Trial]:
    """An arm of the fleet of `settings`."""

    def make(
        cause: str | None = None,
        columns: Sequence[str] = (),
        grade: str = "medium",
        confounders: Sequence[str] = (),
    ) -> Trial:
        fault = Injected(cause=cause, columns=tuple(columns), grade=grade) if cause else None
        return Trial(periods, Arm(name="arm", fault=fault, confounders=tuple(confounders)))

    return make
