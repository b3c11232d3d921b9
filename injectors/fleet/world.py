"""One period of a fleet: its jobs where they run, before anything is timed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from injectors.fleet.catalogue import MODELS, RECIPES
from injectors.fleet.fleet import Fleet, Texts
from injectors.fleet.parameters import Columns
from injectors.fleet.placement import place
from injectors.fleet.traffic import Jobs, Traffic, draw_jobs
from injectors.sim import noise
from injectors.sim.noise import Ints


@dataclass(frozen=True)
class World:
    """The jobs of one period and the GPUs that they run on.

    Faults do not reach here: what a job is and where it runs never depends on how fast it goes.

    Attributes:
        fleet: The machines.
        traffic: What distinguishes this period's jobs.
        later: Whether this is the period that is asked about.
    """

    fleet: Fleet
    traffic: Traffic
    later: bool

    @cached_property
    def jobs(self) -> Jobs:
        """The jobs in order of start."""
        return draw_jobs(self.fleet, self.traffic, self.later)

    @cached_property
    def requested_ns(self) -> Ints:
        """Time that each job asked for, in whole minutes."""
        least, most = self.traffic.slack_percent
        drawn = noise.uniform_q16(noise.extend(self.jobs.keys, "slack"))
        percent_q16 = (least << 16) + (most - least) * drawn
        asked = noise.scale_q16(self.jobs.budget_ns // 1000, percent_q16 // 100) * 1000
        minute = 60 * 10**9
        return -(-asked // minute) * minute

    @cached_property
    def _placed(self) -> tuple[Ints, Ints]:
        jobs = self.jobs
        return place(self.fleet, jobs.keys, jobs.asked_ns, self.requested_ns, jobs.ranks)

    @property
    def first_gpu(self) -> Ints:
        """First GPU of each job."""
        return self._placed[0]

    @property
    def start_ns(self) -> Ints:
        """Start of each job, in ns since the period's."""
        return self._placed[1]

    @cached_property
    def machine(self) -> Ints:
        """Number of each job's machine."""
        return self.first_gpu // self.fleet.group.gpus_per_machine

    @cached_property
    def columns(self) -> Columns:
        """What names a job's segments: the table's columns of the same names."""
        jobs, fleet = self.jobs, self.fleet
        serials = fleet.serials(self.later)[self.first_gpu]
        single = jobs.ranks == 1
        return {
            **jobs.texts,
            "machine": np.array(fleet.machines, dtype=object)[self.machine],
            "gpu_serial": np.where(single, serials, ""),
            "gpu_model": np.array([card.name for card in fleet.cards], dtype=object)[self.machine],
            "driver": fleet.drivers(self.machine, self.start_ns, self.later),
            "ranks": jobs.ranks,
        }

    @cached_property
    def seat_job(self) -> Ints:
        """Number of the job in each seat: a seat is one rank on its GPU, job by job."""
        return np.repeat(np.arange(len(self.jobs.keys)), self.jobs.ranks)

    @cached_property
    def seat_gpu(self) -> Ints:
        """GPU of each seat."""
        first_seat = np.cumsum(self.jobs.ranks) - self.jobs.ranks
        inside = np.arange(len(self.seat_job)) - first_seat[self.seat_job]
        return self.first_gpu[self.seat_job] + inside

    @cached_property
    def seat_columns(self) -> Columns:
        """As `columns`, a row a seat, with the serial number of its own GPU."""
        own: dict[str, Texts | Ints] = {k: v[self.seat_job] for k, v in self.columns.items()}
        return {**own, "gpu_serial": self.fleet.serials(self.later)[self.seat_gpu]}

    def of_card(self, attribute: str) -> Ints:
        """An attribute of each job's card."""
        values = [getattr(card, attribute) for card in self.fleet.cards]
        return np.array(values, dtype=np.int64)[self.machine]

    def of_model(self, attribute: str) -> Ints:
        """An attribute of each job's model; of a pair the one for the job's inputs."""
        table = {name: getattr(MODELS[name], attribute) for name in self.fleet.group.models}
        pairs = [v if isinstance(v, tuple) else (v, v) for v in table.values()]
        index = {name: number for number, name in enumerate(table)}
        numbers = np.array([index[name] for name in self.jobs.texts["model"]], dtype=np.int64)
        return np.asarray(np.array(pairs, dtype=np.int64)[numbers, self.jobs.long])

    def of_recipe(self, attribute: str) -> Ints:
        """An attribute of each job's configuration."""
        table = {name: getattr(RECIPES[name], attribute) for name in self.fleet.group.configs}
        return np.array([table[name] for name in self.jobs.texts["config"]], dtype=np.int64)

    @cached_property
    def batch(self) -> Ints:
        """Samples of a step and rank: what fits into the card's memory, long inputs or short."""
        fitting = self.of_model("batch") * self.of_card("memory_gib")
        return np.asarray(np.maximum(fitting * self.of_recipe("batch_percent") // (24 * 100), 1))

    def of_short_input(self, attribute: str) -> Ints:
        """A pair's first entry: an attribute of each job's model for short inputs."""
        table = {name: getattr(MODELS[name], attribute)[0] for name in self.fleet.group.models}
        return np.array([table[name] for name in self.jobs.texts["model"]], dtype=np.int64)
