"""The simulated suites: groups composed from the matrix, the same for everybody.

Each group takes the causes that fit its job and that the suite has had least so far, at their
next grade, so that causes and grades come out even; which ranks and hosts are hit is drawn by the
group. Under a private seed the draws, and so the composition, are others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.faults.base import Fault, Injection
from injectors.scenario import HEALTHY, TWIN, Arm, CasePlan, Scenario, Withheld
from injectors.sim import noise
from injectors.sim.backend import Group
from injectors.sim.job import Places
from injectors.sim.matrix import Configuration, Matrix, read


def core(private_seed: int | None = None) -> list[Group]:
    """The groups of simulated_core."""
    matrix = read()
    counts = {name: item.groups for name, item in matrix.configurations.items()}
    return _groups(matrix, counts, private_seed)


def smoke(private_seed: int | None = None) -> list[Group]:
    """The groups of simulated_smoke."""
    matrix = read()
    counts = {name: item.smoke for name, item in matrix.configurations.items()}
    return _groups(matrix, counts, private_seed)


def _groups(matrix: Matrix, counts: Mapping[str, int], private_seed: int | None) -> list[Group]:
    composer = _Composer(matrix, private_seed)
    names = [
        (name, number)
        for number in range(max(counts.values()))
        for name, count in counts.items()
        if number < count
    ]
    return [Group(composer.scenario(name, number), private_seed) for name, number in names]


class _Composer:
    """Deals causes out to groups, one group after the other."""

    def __init__(self, matrix: Matrix, private_seed: int | None) -> None:
        self._matrix = matrix
        self._seed = noise.key(matrix.version, str(private_seed))
        self._used: Counter[str] = Counter()
        self._patterns: Counter[Withheld] = Counter()
        self._made = 0

    def scenario(self, name: str, number: int) -> Scenario:
        """Compose the next group."""
        configuration = self._matrix.configurations[name]
        key = noise.key(self._seed, name, number)
        bare = _scenario(name, number, configuration, {}, (TWIN,))
        arms = dict(self._fault_arms(bare, key))
        plans = [TWIN, *(CasePlan(arm=arm) for arm in arms)]
        decoys = dict(self._decoy_arms(bare, key))
        plans += [CasePlan(arm=arm) for arm in decoys]
        both = self._both(bare, arms)
        plans += [CasePlan(arm=arm) for arm in both]
        hidden, more = self._withheld(bare, key, list(decoys))
        self._made += 1
        return _scenario(
            name, number, configuration, {**arms, **decoys, **both, **hidden}, (*plans, *more)
        )

    def _fault_arms(self, bare: Scenario, key: int) -> Iterator[tuple[str, Arm]]:
        fitting = [cause for cause in self._matrix.faults if self._fits(FAULTS[cause], bare)]
        order = noise.permutation(noise.key(key, "causes"), len(fitting))
        ranked = sorted(order, key=lambda i: self._used[fitting[i]])
        for number, index in enumerate(ranked[: self._matrix.faults_per_group]):
            yield f"f{number}", self._fault(fitting[index], bare, key)

    def _fault(self, cause: str, bare: Scenario, key: int) -> Arm:
        return self._graded(cause, self._next(cause), bare, key)

    def _next(self, what: str) -> int:
        """Count a use; returns how many there were before."""
        self._used[what] += 1
        return self._used[what] - 1

    def _decoy_arms(self, bare: Scenario, key: int) -> Iterator[tuple[str, Arm]]:
        fitting = [name for name in self._matrix.decoys if self._fits(DECOYS[name], bare)]
        order = noise.permutation(noise.key(key, "decoys"), len(fitting))
        ranked = sorted(order, key=lambda i: self._used[fitting[i]])
        for number, index in enumerate(ranked[: self._matrix.decoys_per_group]):
            name = fitting[index]
            grades = self._matrix.decoys[name]
            parameters = grades[self._next(name) % len(grades)]
            arm = Arm(decoy=name, parameters=placed(parameters, bare.places, key, name))
            yield f"d{number}", arm

    def _both(self, bare: Scenario, arms: Mapping[str, Arm]) -> dict[str, Arm]:
        if self._made % self._matrix.both_every or len(arms) < 2 or bare.question == "audit":
            return {}
        first, second = list(arms)[:2]
        return {"both": Arm(both=(first, second))}

    def _withheld(
        self, bare: Scenario, key: int, decoys: Sequence[str]
    ) -> tuple[dict[str, Arm], list[CasePlan]]:
        """One way of withholding: a case that it makes undecidable and one that it does not."""
        if bare.question == "audit":
            return {}, []
        usable: dict[Withheld, list[str]] = {}
        for pattern, causes in self._matrix.withheld.items():
            found = [cause for cause in causes if self._fits(FAULTS[cause], bare)]
            if len(found) > 1:
                usable[pattern] = found
        if not usable:
            return {}, []
        pattern = min(usable, key=lambda p: (self._patterns[p], list(usable).index(p)))
        self._patterns[pattern] += 1
        causes = usable[pattern]
        cause = causes[self._patterns[pattern] % len(causes)]
        arms = {"w": self._graded(cause, self._next(f"{pattern} {cause}"), bare, key)}
        healthy = decoys[0] if decoys and self._patterns[pattern] % 2 else HEALTHY
        return arms, [
            CasePlan(arm="w", withhold=pattern),
            CasePlan(arm=healthy, withhold=pattern),
        ]

    def _fits(self, injection: type[Injection], bare: Scenario) -> bool:
        """Whether it can act in this job as the matrix grades it, wherever it is put."""
        if not injection.fits(bare):
            return False
        if not issubclass(injection, Fault):
            return True
        try:
            fault = self._graded(injection.cause, 0, bare, 0).injection()
        except ValueError:  # a place that this job does not have
            return False
        assert isinstance(fault, Fault)
        told = bare.question == "regression" or fault.audit_witness() is not None
        return told and fault.simulated_misfit(bare) is None

    def _graded(self, cause: str, grade: int, bare: Scenario, key: int) -> Arm:
        grades = self._matrix.faults[cause]
        parameters = grades[grade % len(grades)]
        return Arm(fault=cause, parameters=placed(parameters, bare.places, key, cause))


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


def placed(parameters: Mapping[str, Any], places: Places, key: int, what: str) -> dict[str, Any]:
    """Fill in where a fault acts, as the group draws it."""
    draw = noise.key(key, what)
    rank = draw % places.ranks
    here = places.host(rank)
    elsewhere = [other for other in range(places.ranks) if places.host(other) != here]
    beside = [other for other in places.ranks_of_host(here) if other != rank]
    values = {
        "$rank": rank,
        "$host": here,
        "$peer": elsewhere[draw // 7 % len(elsewhere)] if elsewhere else None,
        "$beside": beside[draw // 11 % len(beside)] if beside else None,
        "$pair": sorted([rank, beside[draw // 11 % len(beside)]]) if beside else None,
    }
    return {
        name: values[value] if isinstance(value, str) and value in values else value
        for name, value in parameters.items()
    }
