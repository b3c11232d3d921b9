"""What the simulated suites are composed of, before anything is simulated."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import get_args

import pytest

from cases.taxonomy import Taxonomy
from injectors.build import split_of
from injectors.faults import FAULTS
from injectors.scenario import HEALTHY, TWIN, CasePlan, Scenario, Withheld
from injectors.sim.backend import Group, candidates_of
from injectors.sim.matrix import Matrix, read
from injectors.sim.suite import core, smoke, whole

TAXONOMY = Taxonomy.load()
NOT_OF_SIMULATED = {"nothing", "all_but_steps"}


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    return [group.scenario for group in core()]


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return read()


def planned(scenarios: list[Scenario]) -> Iterator[tuple[Scenario, CasePlan, tuple[str, ...]]]:
    """Every case with the causes that act in it."""
    for scenario in scenarios:
        faults = scenario.faulty()
        for plan in scenario.cases:
            yield scenario, plan, tuple(fault.cause for fault in faults.get(plan.arm, ()))


def test_most_causes_of_all_domains_are_there_often_enough(scenarios: list[Scenario]) -> None:
    found = Counter(
        cause for _, plan, causes in planned(scenarios) if plan.withhold == "nothing"
        for cause in causes
    )  # fmt: skip
    assert len(found) >= 45
    assert min(found.values()) >= 4
    simulated = {name for name, fault in FAULTS.items() if fault.simulated is not None}
    domains = {TAXONOMY.domain(cause) for cause in simulated}
    assert {TAXONOMY.domain(cause) for cause in found} == domains and len(domains) >= 7


def test_about_a_thousand_cases_of_training_and_inference(scenarios: list[Scenario]) -> None:
    kinds = Counter(scenario.build_workload().kind for scenario in scenarios)
    assert kinds["training"] > 3 * kinds["inference"] > 30
    assert 900 <= sum(len(scenario.cases) for scenario in scenarios) <= 1500
    assert {scenario.machine for scenario in scenarios} == {"a100", "h100", "h200"}
    sizes = {scenario.ranks for scenario in scenarios}
    assert min(sizes) == 1 and max(sizes) == 1024 and len(sizes) >= 6


def test_two_questions_and_two_shapes(scenarios: list[Scenario]) -> None:
    found = Counter((scenario.question, scenario.shape) for scenario in scenarios)
    assert found["audit", "snapshot"] >= 5 and found["regression", "run"] >= 8
    assert all(s.steps >= 500 for s in scenarios if s.shape == "run")


def test_some_cases_have_two_faults_of_different_causes(scenarios: list[Scenario]) -> None:
    pairs = [causes for _, _, causes in planned(scenarios) if len(causes) > 1]
    assert len(pairs) >= 30
    assert all(len({*causes}) == 2 for causes in pairs)
    assert len({frozenset(causes) for causes in pairs}) > len(pairs) // 2


def test_every_group_begins_with_its_healthy_twin(scenarios: list[Scenario]) -> None:
    assert all(scenario.cases[0] == TWIN for scenario in scenarios)
    assert all(scenario.cases.count(TWIN) == 1 for scenario in scenarios)


def test_every_configuration_is_used(scenarios: list[Scenario], matrix: Matrix) -> None:
    used = Counter(scenario.name.rpartition("-")[0] for scenario in scenarios)
    wanted = {name: item.groups for name, item in matrix.configurations.items() if item.groups}
    assert used == wanted


def test_every_way_of_withholding_hides_each_cause_and_also_healthy_jobs(
    scenarios: list[Scenario], matrix: Matrix
) -> None:
    hidden: dict[str, Counter[str]] = defaultdict(Counter)
    for _, plan, causes in planned(scenarios):
        if plan.withhold != "nothing":
            hidden[plan.withhold][causes[0] if causes else HEALTHY] += 1
    assert {*hidden} == {*get_args(Withheld)} - NOT_OF_SIMULATED == {*matrix.withheld}
    for pattern, found in hidden.items():
        assert {*found} == {*matrix.withheld[pattern], HEALTHY}, pattern
        # Absence must not say which answer is right.
        assert found[HEALTHY] == sum(found.values()) / 2, pattern


def test_what_is_hidden_is_one_of_several_candidates(scenarios: list[Scenario]) -> None:
    for scenario, plan, causes in planned(scenarios):
        if plan.withhold != "nothing" and causes:
            candidates = candidates_of(scenario, plan.withhold)
            assert {*causes} < {*candidates}, (scenario.name, plan)


def test_places_differ_from_group_to_group(scenarios: list[Scenario]) -> None:
    """Whoever always blames the same rank is right by chance only."""
    ranks: dict[int, Counter[int]] = defaultdict(Counter)
    for scenario in scenarios:
        for fault in scenario.faults().values():
            if isinstance(rank := getattr(fault, "rank", None), int):
                ranks[scenario.ranks][rank] += 1
    for size, found in ranks.items():
        if size > 1 and sum(found.values()) >= 40:
            assert max(found.values()) / sum(found.values()) < 3 / size + 0.15, (size, found)


def test_splits_are_of_whole_groups_and_all_are_there(scenarios: list[Scenario]) -> None:
    names = [Group(scenario).name for scenario in scenarios]
    assert len({*names}) == len(names)
    splits = Counter(split_of(name) for name in names)
    assert {*splits} == {"train", "dev", "public_test"}
    assert splits["train"] > len(names) / 3


def test_the_small_suite_has_training_and_inference_in_about_fifty_cases(
    scenarios: list[Scenario],
) -> None:
    small = [group.scenario for group in smoke()]
    assert 40 <= sum(len(scenario.cases) for scenario in small) <= 56
    assert {s.workload for s in small} <= {s.workload for s in scenarios}
    assert len(small) >= 6  # below six groups no figure has an interval
    kinds = Counter(scenario.build_workload().kind for scenario in small)
    # A server's labels take 20 seeds each: one group is what a suite built in seconds can have.
    assert kinds["training"] >= 4 and kinds["inference"] == 1


def test_composition_is_the_same_again_and_another_under_a_private_seed(
    scenarios: list[Scenario], matrix: Matrix
) -> None:
    assert [group.scenario for group in whole(matrix)] == scenarios
    private = [group.scenario for group in whole(matrix, 3)]
    assert [s.name for s in private] == [s.name for s in scenarios]
    differing = sum(a.arms != b.arms for a, b in zip(private, scenarios, strict=True))
    assert differing > 0.8 * len(scenarios)
