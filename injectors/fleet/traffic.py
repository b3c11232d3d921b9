"""Which jobs come, when, in which configuration and with which versions of software."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from injectors.fleet.catalogue import MODELS, RECIPES
from injectors.fleet.fleet import DAY_NS, HOUR_NS, Fleet, Texts
from injectors.fleet.settings import VersionColumn
from injectors.sim import noise
from injectors.sim.noise import Ints, Keys

NEW_PERCENT = 62  # jobs on a new version once its rollout is over
HEAVY_NEW_PERCENT, LIGHT_NEW_PERCENT = 92, 12
MEAN_NS, MOST_NS = 3 * HOUR_NS // 4, 5 * HOUR_NS
LEAST_NS = HOUR_NS // 4
DAYTIME = (9, 9)  # first hour of the day's busy time, and how many hours it has
SOFTWARE: tuple[VersionColumn, ...] = ("nccl", "framework", "image", "storage")


@dataclass(frozen=True)
class Traffic:
    """What distinguishes the jobs of one period from another's.

    Attributes:
        heavier: How many times as many heavy jobs come for a light one.
        long_percent: Share of jobs with long inputs.
        day_percent: Share of jobs that start in daytime; 37 is no preference.
        attracts: Columns whose new version heavy jobs take and light ones leave.
        at_once: Columns whose new version all jobs have from the start.
        slack_percent: Least and most of the expected time that jobs ask for.
        blind: Whether they expect the time that short inputs take, whatever theirs are.
    """

    long_percent: int
    heavier: int = 1
    day_percent: int = 40
    attracts: frozenset[VersionColumn] = frozenset()
    at_once: frozenset[VersionColumn] = frozenset()
    slack_percent: tuple[int, int] = (150, 350)
    blind: bool = False


@dataclass(frozen=True)
class Jobs:
    """Jobs of one period in the order in which they come; arrays have one entry a job.

    Attributes:
        keys: Each job's own key, by which all that is random about it is drawn.
        asked_ns: When it comes, in ns since the period's start.
        budget_ns: Time that it would take at nominal speed.
        texts: Columns that name things: model, config, nccl, framework, image, storage.
    """

    keys: Keys
    asked_ns: Ints
    budget_ns: Ints
    ranks: Ints
    long: Ints
    texts: dict[str, Texts] = field(default_factory=dict)


def draw_jobs(fleet: Fleet, traffic: Traffic, later: bool) -> Jobs:
    """Draw the jobs of the earlier or the later period."""
    group = fleet.group
    own = noise.keys(fleet.key, "later" if later else "earlier", "job", np.arange(group.jobs))
    start = _starts(own, traffic, group.days)
    order = np.argsort(start, kind="stable")
    own, start = own[order], start[order]
    model, config, heavy = _work(own, fleet, traffic)
    sizes = list(group.ranks)
    ranks = noise.choice(noise.extend(own, "ranks"), list(group.ranks.values()))
    drawn = noise.uniform_q16(noise.extend(own, "long"))
    software: dict[str, Texts] = {
        column: _version(fleet, column, own, heavy, start, traffic, later) for column in SOFTWARE
    }
    return Jobs(
        keys=own,
        asked_ns=start,
        budget_ns=_budgets(own),
        ranks=np.array(sizes, dtype=np.int64)[ranks],
        long=(drawn * 100 < traffic.long_percent * noise.ONE_Q16).astype(np.int64),
        texts={"model": model, "config": config, **software},
    )


def heavy_pairs(models: tuple[str, ...], configs: tuple[str, ...]) -> set[tuple[str, str]]:
    """Pairs of model and configuration whose steps are longer than the middle one's."""
    work = {(m, c): step_work(m, c) for m in models for c in configs}
    ordered = sorted(work, key=lambda pair: (work[pair], pair))
    return set(ordered[(len(ordered) + 1) // 2 :])


def step_work(model: str, config: str) -> int:
    """Compute of a step with short inputs, in arbitrary units that compare pairs."""
    own, recipe = MODELS[model], RECIPES[config]
    percents = recipe.work_percent * recipe.batch_percent
    return own.mflop[0] * own.batch * percents // own.efficiency_percent


def _work(own: Keys, fleet: Fleet, traffic: Traffic) -> tuple[Texts, Texts, Ints]:
    pairs = [(m, c) for m in fleet.group.models for c in fleet.group.configs]
    heavy = heavy_pairs(fleet.group.models, fleet.group.configs)
    weights = [traffic.heavier if pair in heavy else 1 for pair in pairs]
    chosen = noise.choice(noise.extend(own, "work"), weights)
    models, configs = np.array(pairs, dtype=object).T
    is_heavy = np.array([pair in heavy for pair in pairs], dtype=np.int64)
    return models[chosen], configs[chosen], is_heavy[chosen]


def _starts(own: Keys, traffic: Traffic, days: int) -> Ints:
    day = noise.below(noise.extend(own, "day"), days)
    by_day = noise.uniform_q16(noise.extend(own, "by day")) * 100 < (
        traffic.day_percent * noise.ONE_Q16
    )
    first, hours = DAYTIME
    length = np.where(by_day, hours, 24 - hours) * HOUR_NS
    begin = np.where(by_day, first, first + hours) * HOUR_NS
    # The night's hours run past midnight, into the early hours of the same day.
    inside = (begin + noise.scale_q16(length, _fine(own))) % DAY_NS
    return day * DAY_NS + inside


def _fine(own: Keys) -> Ints:
    return noise.uniform_q16(noise.extend(own, "time of day"))


def _budgets(own: Keys) -> Ints:
    drawn = noise.exponential_q16(noise.extend(own, "budget"))
    return LEAST_NS + np.minimum(noise.scale_q16(MEAN_NS, drawn), MOST_NS)


def _version(
    fleet: Fleet,
    column: VersionColumn,
    own: Keys,
    heavy: Ints,
    start_ns: Ints,
    traffic: Traffic,
    later: bool,
) -> Texts:
    """Choose between two old versions, and in the later period a new one that comes by and by."""
    versions = np.array(fleet.versions[column], dtype=object)
    old = versions[noise.below(noise.extend(own, "old", column), 2)]
    if not later:
        return old
    together = fleet.group.together
    leader = together[0] if column in together else column
    percent = np.full(len(own), NEW_PERCENT, dtype=np.int64)
    if leader in traffic.attracts:
        percent = np.where(heavy == 1, HEAVY_NEW_PERCENT, LIGHT_NEW_PERCENT)
    ramp_ns = fleet.group.days * DAY_NS // 3
    percent = percent * np.minimum(start_ns, ramp_ns) // ramp_ns
    if leader in traffic.at_once:
        percent = np.full(len(own), 100, dtype=np.int64)
    drawn = noise.uniform_q16(noise.extend(own, "adopts", leader))
    return np.where(drawn * 100 < percent * noise.ONE_Q16, versions[2], old)
