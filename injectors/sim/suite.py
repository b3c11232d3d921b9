"""The simulated suites: groups composed from the matrix, the same for everybody.

Each group takes the causes that fit its job and that the suite has had least so far, at their
next grade, so that causes and grades come out even; which ranks and hosts are hit is drawn by the
group. Under a private seed the draws, and so the composition, are others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from cases.documents import parse_record
from injectors.scenario import HEALTHY, TWIN, Arm, CasePlan, Scenario, Withheld
from injectors.sim import noise
from injectors.sim.aiming import Aim
from injectors.sim.backend import Group
from injectors.sim.grades import placed, units
from injectors.sim.matrix import MATRIX, Matrix, read
from injectors.sim.offers import INJECTIONS, Place, aim_at, dials, placed_arm

SAME = ("workload", "machine", "ranks", "steps", "profiled_steps", "shape", "question")
HIDDEN = "w"  # name of the arm whose signals are withheld
Offered = Mapping[str, Sequence[Arm]]  # what can act in a job, at its grades


def core(private_seed: int | None = None) -> list[Group]:
    """The groups of simulated_core."""
    return whole(read(), private_seed)


def smoke(private_seed: int | None = None) -> list[Group]:
    """The groups of simulated_smoke."""
    matrix = read()
    counts = {name: item.smoke for name, item in matrix.configurations.items()}
    return _groups(matrix, counts, private_seed)


def whole(
    matrix: Matrix, private_seed: int | None = None, where: str | Path = MATRIX
) -> list[Group]:
    """The groups of any matrix.

    Raises:
        RecordError: a job or a fault of it breaks its rules; `where` is the matrix's file.
    """
    counts = {name: item.groups for name, item in matrix.configurations.items()}
    return _groups(matrix, counts, private_seed, where)


def candidates(
    matrix: Matrix, pattern: Withheld, configuration: str, number: int, seed: int | None = None
) -> Group:
    """Compose a group of one case for each cause that a way of withholding leaves alike."""
    return _Composer(matrix, seed).candidates(pattern, configuration, number)


def _groups(
    matrix: Matrix,
    counts: Mapping[str, int],
    private_seed: int | None,
    where: str | Path = MATRIX,
) -> list[Group]:
    composer = _Composer(matrix, private_seed, where)
    names = [
        (name, number)
        for number in range(max(counts.values()))
        for name, count in counts.items()
        if number < count
    ]
    made = [composer.group(name, number) for name, number in names]
    # Servers take longest: begun first, they end beside the others and not after them.
    return sorted(made, key=lambda group: group.scenario.build_workload().kind != "inference")


class _Composer:
    """Deals causes out to groups, one group after the other."""

    def __init__(
        self, matrix: Matrix, private_seed: int | None, where: str | Path = MATRIX
    ) -> None:
        self._matrix, self._private_seed, self._where = matrix, private_seed, where
        self._seed = noise.key(matrix.version, str(private_seed))
        self._used: Counter[str] = Counter()
        self._patterns: Counter[Withheld] = Counter()
        self._made = 0

    def group(self, name: str, number: int) -> Group:
        """Compose the next group."""
        bare, key, place = self._begin(name, number)
        offered = self._offered(bare, name, place)
        faults = [cause for cause in self._matrix.faults if cause in offered]
        decoys = [decoy for decoy in self._matrix.decoys if decoy in offered]
        arms = self._dealt("f", faults, self._matrix.faults_per_group, offered, key)
        odd = self._dealt("d", decoys, self._matrix.decoys_per_group, offered, key)
        both = self._both(bare, arms)
        arms = {**arms, **odd, **both}
        plans = [CasePlan(arm=arm) for arm in arms]
        pattern, aim = self._withheld(bare, name, place, key)
        if pattern and aim:
            healthy = next(iter(odd), HEALTHY) if self._patterns[pattern] % 2 else HEALTHY
            arms[aim.arm] = aim.dial.mild
            plans += [CasePlan(arm=arm, withhold=pattern) for arm in (aim.arm, healthy)]
        self._made += 1
        scenario = self._scenario(name, number, arms, (TWIN, *plans))
        return Group(scenario, self._private_seed, (aim,) if aim else ())

    def candidates(self, pattern: Withheld, name: str, number: int) -> Group:
        """Compose a group of nothing but the candidates of a way of withholding."""
        bare, key, place = self._begin(name, number)
        found = dials(self._matrix, pattern, bare, name, place, self._where)
        aims = tuple(aim_at(self._matrix, cause, cause, found, key) for cause in found)
        plans = [CasePlan(arm=aim.arm, withhold=pattern) for aim in aims]
        arms = {aim.arm: aim.dial.mild for aim in aims}
        scenario = self._scenario(name, number, arms, (TWIN, *plans))
        return Group(scenario, self._private_seed, aims)

    def _begin(self, name: str, number: int) -> tuple[Scenario, int, Place]:
        """The job of a group alone, its key, and how grades are placed in it."""
        bare = self._scenario(name, number, {}, (TWIN,))
        key = noise.key(self._seed, name, number)
        lengths = self._matrix.configurations[name].step_ms
        of = units(bare.build_workload(), lengths[number % len(lengths)])
        return bare, key, partial(placed, places=bare.places, key=key, of=of)

    def _scenario(
        self, name: str, number: int, arms: Mapping[str, Arm], cases: Sequence[CasePlan]
    ) -> Scenario:
        job = self._matrix.configurations[name]
        varied = {key: values[number % len(values)] for key, values in job.vary.items()}
        document = {
            "format": Scenario.model_fields["format"].default,
            "name": f"{name}-{number}",
            "parameters": {**job.parameters, **varied},
            "arms": dict(arms),
            "cases": tuple(cases),
            **{field: getattr(job, field) for field in SAME},
        }
        return parse_record(document, Scenario, where=f"{self._where}: configurations.{name}")

    def _offered(self, bare: Scenario, name: str, place: Place) -> dict[str, list[Arm]]:
        """Return the faults and decoys that can act in this job where the group puts them.

        Each with its grades for the configuration, those left out that this job can't show.
        """
        found: dict[str, list[Arm]] = {}
        for what in (*self._matrix.faults, *self._matrix.decoys):
            for grade in self._matrix.grades(what, name) if INJECTIONS[what].fits(bare) else ():
                arm = placed_arm(what, grade, bare, place, self._where)
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
            pattern: found
            for pattern in self._matrix.withheld
            if len(found := dials(self._matrix, pattern, bare, name, place, self._where)) > 1
        }
        if not usable:
            return None, None
        pattern = min(usable, key=lambda p: (self._patterns[p], list(usable).index(p)))
        cause = min(usable[pattern], key=lambda c: self._used[f"{pattern} {c}"])
        self._patterns[pattern] += 1
        self._used[f"{pattern} {cause}"] += 1
        return pattern, aim_at(self._matrix, HIDDEN, cause, usable[pattern], key)
