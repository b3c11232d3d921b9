"""The simulated suites: groups composed from the matrix, the same for everybody.

Each group takes the causes that fit its job and that the suite has had least so far, at their
next grade, so that causes and grades come out even; which ranks and hosts are hit is drawn by the
group. Under a private seed the draws, and so the composition, are others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.faults.base import Fault, Injection
from injectors.scenario import HEALTHY, TWIN, Arm, CasePlan, Scenario, Withheld
from injectors.sim import noise
from injectors.sim.backend import Group
from injectors.sim.grades import placed, units
from injectors.sim.matrix import Configuration, Matrix, read

INJECTIONS: dict[str, type[Injection]] = {**FAULTS, **DECOYS}
Offered = Mapping[str, Sequence[Arm]]  # what can act in a job, at its grades


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
        step_ms = configuration.step_ms[number % len(configuration.step_ms)]
        offered = self._offered(bare, name, key, units(bare.build_workload(), step_ms))
        faults = [cause for cause in self._matrix.faults if cause in offered]
        decoys = [decoy for decoy in self._matrix.decoys if decoy in offered]
        arms = self._dealt("f", faults, self._matrix.faults_per_group, offered, key)
        odd = self._dealt("d", decoys, self._matrix.decoys_per_group, offered, key)
        both = self._both(bare, arms)
        plans = [TWIN, *(CasePlan(arm=arm) for arm in (*arms, *odd, *both))]
        hidden, more = self._withheld(bare, offered, list(odd))
        self._made += 1
        return _scenario(
            name, number, configuration, {**arms, **odd, **both, **hidden}, (*plans, *more)
        )

    def _offered(
        self, bare: Scenario, name: str, key: int, of: Mapping[str, float]
    ) -> dict[str, list[Arm]]:
        """Return the faults and decoys that can act in this job where the group puts them.

        Each with its grades for the configuration, those left out that this job can't show.
        """
        found: dict[str, list[Arm]] = {}
        for what in (*self._matrix.faults, *self._matrix.decoys):
            kind = "fault" if what in FAULTS else "decoy"
            for grade in self._matrix.grades(what, name) if INJECTIONS[what].fits(bare) else ():
                try:
                    parameters = placed(grade, bare.places, key, what, of)
                except LookupError:  # a place that this job does not have
                    continue
                arm = Arm.model_validate({kind: what, "parameters": parameters})
                if _shows(arm.injection(), bare):
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
        self, bare: Scenario, offered: Offered, decoys: Sequence[str]
    ) -> tuple[dict[str, Arm], list[CasePlan]]:
        """One way of withholding: a case that it makes undecidable and one that it does not."""
        if bare.question == "audit":
            return {}, []
        usable: dict[Withheld, list[str]] = {}
        for pattern, causes in self._matrix.withheld.items():
            found = [cause for cause in causes if cause in offered]
            if len(found) > 1:
                usable[pattern] = found
        if not usable:
            return {}, []
        pattern = min(usable, key=lambda p: (self._patterns[p], list(usable).index(p)))
        self._patterns[pattern] += 1
        cause = min(usable[pattern], key=lambda c: self._used[f"{pattern} {c}"])
        arms = {"w": self._next(f"{pattern} {cause}", cause, offered)}
        healthy = decoys[0] if decoys and self._patterns[pattern] % 2 else HEALTHY
        return arms, [
            CasePlan(arm="w", withhold=pattern),
            CasePlan(arm=healthy, withhold=pattern),
        ]


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
