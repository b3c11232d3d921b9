"""Conditions of a twin's steps: as of all jobs, but for its own lengths, checks and links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from injectors.sim.conditions import Dynamics
from injectors.sim.cpu_time import cpu_time
from injectors.sim.expected import expect
from injectors.sim.job import ONE, Job
from injectors.sim.program import Conditions, Ints, Program
from injectors.sim.workloads.cpu.blocks import EAGER, GRAPHS
from injectors.sim.workloads.cpu.fetching import TwinFetching
from injectors.sim.workloads.cpu.operators import twin_of
from injectors.sim.workloads.cpu.step import ANOMALY
from injectors.sim.workloads.cpu.transformer import SQUARES
from injectors.workloads.language_model import LanguageModel


class TwinDynamics(Dynamics):
    """Conditions of every step of a twin."""

    def __init__(self, job: Job, program: Program) -> None:
        super().__init__(job, program)
        expected = expect(program)
        # Where workers run, and what that costs whom, is known better than in general.
        twin, host = twin_of(job), job.host
        # Competitors take less of each rank where ranks share a core already.
        beside = -(-job.places.ranks // twin.cores) if twin.pinned else 1
        alone = replace(
            job,
            loader=replace(job.loader, workers=0, decode_ns=0),
            host=replace(host, hog_duty_q16=host.hog_duty_q16 // beside),
        )
        self._cpu = cpu_time(alone, expected)
        self._preemption = self._cpu.losses.preemption(self._chance_ns)
        self._fetching = TwinFetching(job, program.batches, expected)
        self._twin, self._rows = twin_of(job), program.work_rows
        self._link_q16 = link_q16(job)

    def conditions(self, step: int) -> Conditions:
        """Return the conditions of the next step."""
        found = super().conditions(step)
        work = found.work_q16.copy()
        for row, name in enumerate(self._rows):
            if name == ANOMALY:
                every = max(1, self._twin.number("anomaly_every"))
                work[row] *= (step + 1) % every == 0
            if name.endswith(SQUARES):
                work[row] = work[row] * self._squares_q16(step) >> 16
            if name.startswith((GRAPHS, EAGER)):
                work[row] *= self._is_compiled(step) == name.startswith(GRAPHS)
        transfer = found.transfer_q16 * self._link_q16 >> 16
        return replace(found, work_q16=work, transfer_q16=transfer)

    def _is_compiled(self, step: int) -> bool:
        """Whether the step's shapes are among the first ones, for which graphs were made."""
        model = self._job.workload
        assert isinstance(model, LanguageModel)
        first = step * model.micro_batches % len(model.lengths)
        return first < int(self._twin.settings["recompile_limit"])

    def _squares_q16(self, step: int) -> Ints:
        """Length of the sequences of a rank's batches over the mean of all."""
        ranks, model = self._job.places.ranks, self._job.workload
        if not isinstance(model, LanguageModel):
            return np.full(ranks, ONE, np.int64)
        lengths, shift = model.lengths, self._twin.number("length_shift")
        mean, first = sum(lengths) // len(lengths), step * model.micro_batches
        totals = [
            sum(
                lengths[(first + number + shift * rank) % len(lengths)]
                for number in range(model.micro_batches)
            )
            for rank in range(ranks)
        ]
        return np.array(totals, np.int64) * ONE // (mean * model.micro_batches)


def link_q16(job: Job) -> int:
    """How much longer transfers take: a ring goes over all interfaces, the slowest sets its pace.

    Foreign flows share an interface evenly with the job's own.
    """
    twin, usual = twin_of(job), job.machine.nic_bytes_per_s
    rate = min([usual, *twin.limited.values()])
    if twin.flows:
        rate = rate // (1 + max(twin.flows.values()))
    return usual * ONE // max(rate, 1)
