"""The simulated suites: groups composed from the matrix, the same for everybody.

Each group takes the causes that fit its job and that the suite has had least so far, at their
next grade, so that causes and grades come out even; which ranks and hosts are hit is drawn by the
group. Under a private seed the draws, and so the composition, are others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.faults.base import Fault, Injection
from injectors.scenario import HEALTHY, TWIN, Arm, CasePlan, Scenario, Withheld
from injectors.sim import noise
from injectors.sim.aiming import Aim, Dial
from injectors.sim.backend import Group
from injectors.sim.grades import placed, units
from injectors.sim.matrix import Configuration, Matrix, read

INJECTIONS: dict[str, type[Injection]] = {**FAULTS, **DECOYS}
Offered = Mapping[str, Sequence[Arm]]  # what can act in a job, at its grades
Place = Callable[..., dict[str, Any]]  # `placed` in one job


def core(private_seed: int | None = None) -> list[Group]:
    """The groups of simulated_core."""
    return whole(read(), private_seed)


def smoke(private_seed: int | None = None) -> list[Group]:
    """The groups of simulated_smoke."""
    matrix = read()
    counts = {name: item.smoke for name, item in matrix.configurations.items()}
    return _groups(matrix, counts, private_seed)


def whole(matrix: Matrix, private_seed: int | None = None) -> list[Group]:
    """The groups of any matrix."""
    counts = {name: item.groups for name, item in matrix.configurations.items()}
    return _groups(matrix, counts, private_seed)


def _groups(matrix: Matrix, counts: Mapping[str, int], private_seed: int | None) -> list[Group]:
    composer = _Composer(matrix, private_seed)
    names = [
        (name, number)
        for number in range(max(counts.values()))
        for name, count in counts.items()
        if number < count
    ]
    composed = (composer.group(name, number) for name, number in names)
    return [Group(scenario, private_seed, aim) for scenario, aim in composed]


class _Composer:
    """Deals causes out to groups, one group after the other."""

    def __init__(self, matrix: Matrix, private_seed: int | None) -> None:
        self._matrix = matrix
        self._seed = noise.key(matrix.version, str(private_seed))
        self._used: Counter[str] = Counter()
        self._patterns: Counter[Withheld] = Counter()
        self._made = 0

    def group(self, name: str, number: int) -> tuple[Scenario, Aim | None]:
        """Compose the next group: its scenario, and what its hidden fault is aimed at."""
        configuration = self._matrix.configurations[name]
        key = noise.key(self._seed, name, number)
        bare = _scenario(name, number, configuration, {}, (TWIN,))
        step_ms = configuration.step_ms[number % len(configuration.step_ms)]
        place = partial(
            placed, places=bare.places, key=key, of=units(bare.build_workload(), step_ms)
        )
        offered = self._offered(bare, name, place)
        faults = [cause for cause in self._matrix.faults if cause in offered]
        decoys = [decoy for decoy in self._matrix.decoys if decoy in offered]
        arms = self._dealt("f", faults, self._matrix.faults_per_group, offered, key)
        odd = self._dealt("d", decoys, self._matrix.decoys_per_group, offered, key)
        both = self._both(bare, arms)
        plans = [TWIN, *(CasePlan(arm=arm) for arm in (*arms, *odd, *both))]
        arms = {**arms, **odd, **both}
        pattern, aim = self._withheld(bare, name, place, key)
        if pattern and aim:
            healthy = next(iter(odd), HEALTHY) if self._patterns[pattern] % 2 else HEALTHY
            arms[aim.arm] = aim.dial.mild
            plans += [CasePlan(arm=arm, withhold=pattern) for arm in (aim.arm, healthy)]
        self._made += 1
        return _scenario(name, number, configuration, arms, plans), aim

    def _offered(self, bare: Scenario, name: str, place: Place) -> dict[str, list[Arm]]:
        """Return the faults and decoys that can act in this job where the group puts them.

        Each with its grades for the configuration, those left out that this job can't show.
        """
        found: dict[str, list[Arm]] = {}
        for what in (*self._matrix.faults, *self._matrix.decoys):
            for grade in self._matrix.grades(what, name) if INJECTIONS[what].fits(bare) else ():
                arm = _placed(what, grade, bare, place)
                if arm is not None:
                    found.setdefault(what, []).append(arm)
        return found

    def _dealt(
        self, letter: str, names: Sequence[str], count: int, offered: Offered, key: int
    ) -> dict[str, Arm]:
        """Take the `count` that the suite has had least so far, at their next grades."""
        order = noise.permutation(noise.key(key, letter), len(names))
        ranked = sorted(order, key=lambda i: self._used[names[i]])
        chosen = [names[i] for i in ranked[:count]]
        return {f"{letter}{n}": self._next(what, what, offered) for n, what in enumerate(chosen)}

    def _next(self, count: str, what: str, offered: Offered) -> Arm:
        """Return the next grade by a count of uses."""
        self._used[count] += 1
        return offered[what][(self._used[count] - 1) % len(offered[what])]

    def _both(self, bare: Scenario, arms: Mapping[str, Arm]) -> dict[str, Arm]:
        if self._made % self._matrix.both_every or len(arms) < 2 or bare.question == "audit":
            return {}
        first, second = list(arms)[:2]
        return {"both": Arm(both=(first, second))}

    def _withheld(
        self, bare: Scenario, name: str, place: Place, key: int
    ) -> tuple[Withheld | None, Aim | None]:
        """Choose a way of withholding, and one of the causes that it leaves alike."""
        if bare.question == "audit":
            return None, None
        usable = {
            pattern: dials
            for pattern in self._matrix.withheld
            if len(dials := self._dials(pattern, bare, name, place)) > 1
        }
        if not usable:
            return None, None
        pattern = min(usable, key=lambda p: (self._patterns[p], list(usable).index(p)))
        dials = usable[pattern]
        cause = min(dials, key=lambda c: self._used[f"{pattern} {c}"])
        self._patterns[pattern] += 1
        self._used[f"{pattern} {cause}"] += 1
        coarse = next((dial for dial in dials.values() if dial.coarse), None)
        return pattern, Aim("w", self._slowdown(key), dials[cause], coarse)

    def _dials(self, pattern: Withheld, bare: Scenario, name: str, place: Place) -> dict[str, Dial]:
        """Return the strengths of a pattern's causes in a job, those that can act in it."""
        found = {}
        for cause in self._matrix.withheld[pattern]:
            hidden = self._matrix.dial(cause, name) if FAULTS[cause].fits(bare) else None
            if hidden is None:
                continue
            mild, strong = (
                _placed(cause, end, bare, place) for end in (hidden.mild, hidden.strong)
            )
            if mild is not None and strong is not None:
                found[cause] = Dial(mild, strong, hidden.coarse)
        return found

    def _slowdown(self, key: int) -> float:
        """Draw what a group's hidden fault costs, whichever it is."""
        least, most = self._matrix.hidden_slowdown
        return least + (most - least) * (noise.key(key, "slowdown") >> 48) / 65536


def _placed(what: str, grade: Mapping[str, Any], bare: Scenario, place: Place) -> Arm | None:
    """Return the arm of a grade; None where the job has no such place or can't show it."""
    try:
        parameters = place(grade, what=what)
    except LookupError:
        return None
    kind = "fault" if what in FAULTS else "decoy"
    arm = Arm.model_validate({kind: what, "parameters": parameters})
    return arm if _shows(arm.injection(), bare) else None


def _shows(injection: Injection, bare: Scenario) -> bool:
    """Whether the job can show it; without a reference run only what is told by itself."""
    audit = bare.question == "audit"
    if audit and isinstance(injection, Fault) and injection.audit_witness() is None:
        return False
    return injection.simulated_misfit(bare) is None


def _scenario(
    name: str,
    number: int,
    configuration: Configuration,
    arms: Mapping[str, Arm],
    cases: Sequence[CasePlan],
) -> Scenario:
    varied = {key: values[number % len(values)] for key, values in configuration.vary.items()}
    return Scenario(
        name=f"{name}-{number}",
        workload=configuration.workload,
        machine=configuration.machine,
        ranks=configuration.ranks,
        parameters={**configuration.parameters, **varied},
        steps=configuration.steps,
        profiled_steps=configuration.profiled_steps,
        shape=configuration.shape,
        question=configuration.question,
        arms=dict(arms),
        cases=tuple(cases),
    )
