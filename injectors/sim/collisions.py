"""Cases that must not be told apart: one for each cause that a way of withholding leaves alike.

All candidates act in the same job and cost the same; what is left of their recordings is what a
diagnoser would get. harness.audit.collisions tries to tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cases.bundle import RunData
from injectors.scenario import TWIN, Withheld
from injectors.sim.backend import TRACED_RANKS, Group
from injectors.sim.matrix import Matrix
from injectors.sim.public import sampled_ranks
from injectors.sim.recording import record
from injectors.sim.suite import candidates
from injectors.sim.withheld import withhold

WITH_TRACES = ("no_baseline_single_gpu",)  # all others take traces away


@dataclass(frozen=True)
class Seen:
    """What is left of one recording.

    Attributes:
        cause: What made the job slow.
        group: The job; all of its candidates share the reference run.
        run, reference: What a diagnoser gets.
    """

    cause: str
    group: str
    run: RunData
    reference: RunData


def observe(
    matrix: Matrix, pattern: Withheld, configuration: str, number: int, seed: int = 0
) -> list[Seen]:
    """Simulate a group's candidates; empty where they can't cost what they shall."""
    group = candidates(matrix, pattern, configuration, number, seed)
    found = dict(_runs(group, pattern))
    if len(found) < 2:
        return []
    reference = withhold(group.reference[0], pattern)
    return [Seen(cause, group.name, run, reference) for cause, run in found.items()]


def _runs(group: Group, pattern: Withheld) -> Iterator[tuple[str, RunData]]:
    """Yield what a pattern leaves of each candidate's run, as it would be shipped."""
    for number, plan in enumerate(group.scenario.cases):
        scenario = group.scenario_of(number, plan)
        if plan == TWIN or isinstance(scenario, str):
            continue
        job = group.case_job(number, scenario.injections(plan.arm))
        traced = min(TRACED_RANKS, job.places.ranks) if pattern in WITH_TRACES else 0
        sampled = sampled_ranks(job.places, group.key, traced) if traced else ()
        yield plan.arm, withhold(record(job, sampled)[0], pattern)
