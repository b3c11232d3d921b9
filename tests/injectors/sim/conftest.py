"""A job of four ranks on two hosts, for tests of what its settings lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from injectors.sim.job import Job, Loader, Places
from injectors.sim.machine import MACHINES
from injectors.sim.workloads.data_parallel import DdpTransformer

PLACES = Places(ranks=4, per_host=2, data=4)
MakeJob = Callable[..., Job]


@pytest.fixture(scope="session")
def make_job() -> MakeJob:
    """Return a function that makes a job; `machine` by name, other fields as of `Job`."""

    def make(machine: str = "h100", places: Places = PLACES, **fields: Any) -> Job:
        usual: dict[str, Any] = {"seed": 1, "steps": 10, "profiled_steps": 3}
        fields = {"loader": Loader(workers=0)} | usual | fields
        cores = fields.pop("cores", 8)
        return Job(
            workload=DdpTransformer(),
            machine=replace(MACHINES[machine], cores=cores),
            places=places,
            **fields,
        )

    return make
