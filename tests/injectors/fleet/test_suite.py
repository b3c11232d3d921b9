"""The public suite: what the matrix makes, and a part of it written, checked and audited."""

from __future__ import annotations

import hashlib
import pickle
from collections import Counter
from pathlib import Path

import pytest

from cases.taxonomy import Taxonomy
from cases.truth import Counterfactual
from harness.audit import audit_suite
from harness.checks import check_suite, composition
from harness.judge import load_truths
from injectors.build import Places
from injectors.fleet.confounders import CONFOUNDERS
from injectors.fleet.faults import FLEET_FAULTS
from injectors.fleet.settings import Arm, FleetGroup, read_matrix
from injectors.fleet.suite import Group, groups, make
from injectors.fleet.withheld import WITHHELD
from injectors.sim.made import MadeCase, MadeGroup
from injectors.suites import build_groups

WRITTEN = ("versions-c", "data-a", "limits-b")


@pytest.fixture(scope="module")
def made() -> dict[str, MadeGroup]:
    return {group.name: make(group) for group in groups()}


@pytest.fixture(scope="module")
def cases(made: dict[str, MadeGroup]) -> list[MadeCase]:
    return [case for group in made.values() for case in group.cases]


def test_no_case_of_the_matrix_is_refused(made: dict[str, MadeGroup]) -> None:
    assert not {key: why for group in made.values() for key, why in group.refused.items()}


def test_the_suite_is_as_large_and_mixed_as_it_has_to_be(cases: list[MadeCase]) -> None:
    verdicts = Counter(case.truth.verdict for case in cases)
    assert len(cases) >= 140
    assert len({case.truth.group for case in cases}) >= 30
    assert 0.3 < verdicts["healthy"] / len(cases) < 0.45
    assert verdicts["undecidable"] >= 20
    assert Counter(case.truth.split for case in cases).keys() == {"train", "dev", "public_test"}


def test_every_cause_and_every_confounder_is_there(cases: list[MadeCase]) -> None:
    faulty = [case.truth for case in cases if case.truth.verdict == "faulty"]
    causes = Counter(fault.cause for truth in faulty for fault in truth.faults)
    assert set(causes) == set(FLEET_FAULTS)
    assert min(causes.values()) >= 3
    columns = Counter(len(fault.locus.segment) for truth in faulty for fault in truth.faults)
    assert min(columns[1], columns[2]) >= 20
    decoys = {d.name for c in cases if c.truth.verdict == "healthy" for d in c.truth.decoys}
    assert decoys >= {n for n, c in CONFOUNDERS.items() if c.looks_like} | {"hidden_slow_read"}


def test_what_is_withheld_does_not_give_the_verdict_away(cases: list[MadeCase]) -> None:
    for name, withheld in WITHHELD.items():
        verdicts = [
            case.truth.verdict for case in cases if case.truth.recipe["group"]["withheld"] == name
        ]
        share = verdicts.count("undecidable") / len(verdicts)
        assert share == 0 if name == "nothing" else 0.3 <= share <= 0.7
        assert name == "nothing" or {"faulty", "healthy"} <= set(verdicts)
        assert set(withheld.candidates) <= set(FLEET_FAULTS)


def test_undecidable_cases_say_what_is_missing(cases: list[MadeCase]) -> None:
    for case in cases:
        if case.truth.verdict == "undecidable":
            assert {fault.cause for fault in case.truth.faults} < set(case.truth.candidates)
            columns = [signal.removeprefix("jobs.") for signal in case.truth.missing_signals]
            assert case.tables["jobs"][columns].isna().all(axis=None)


def test_costs_are_those_of_the_same_seed(cases: list[MadeCase]) -> None:
    for case in cases:
        validation = case.truth.validation
        assert isinstance(validation, Counterfactual)
        for fault in case.truth.faults:
            without = validation.seconds["1" if len(validation.injections) > 1 else "none"][0]
            every = validation.seconds["0+1" if len(validation.injections) > 1 else "0"][0]
            assert fault.lost_fraction.value == pytest.approx(1 - without / every)


def test_the_public_half_is_the_same_for_all_cases_of_a_group(made: dict[str, MadeGroup]) -> None:
    for group in made.values():
        infos = {
            case.info.model_copy(update={"id": "same"}).model_dump_json() for case in group.cases
        }
        rows = {len(case.tables["jobs"]) for case in group.cases}
        assert len(infos) == len(rows) == 1


def test_ids_are_opaque_and_differ(cases: list[MadeCase]) -> None:
    assert len({case.info.id for case in cases}) == len(cases)
    assert all(len(case.info.id) == 12 for case in cases)


def test_a_private_seed_changes_fleets_names_and_ids() -> None:
    public, private, again = groups()[0], groups(5)[0], groups(5)[0]
    assert public.name != private.name == again.name
    assert public.digest != private.digest == again.digest
    first, second = make(public).cases[0], make(private).cases[0]
    assert first.info.id != second.info.id
    assert not set(first.tables["jobs"]["machine"]) >= set(second.tables["jobs"]["machine"])


def test_a_group_is_made_the_same_anywhere_and_in_any_order() -> None:
    group = groups()[3]
    alone = pickle.loads(pickle.dumps(group)).make()
    backwards = group.settings.model_copy(
        update={"arms": (group.settings.arms[0], *group.settings.arms[:0:-1])}
    )
    other = Group(backwards).make()
    content = [
        {c.info.id: hashlib.sha256(c.tables["jobs"].to_csv().encode()).hexdigest() for c in g.cases}
        for g in (alone, other)
    ]
    assert content[0] == content[1]


def test_the_first_cases_content_is_frozen() -> None:
    """Raise injectors.fleet.making.VERSION when this has to change."""
    case = make(groups()[0]).cases[1]
    head = case.tables["jobs"][["start_ns", "step_ns", "compute_ns", "sm_clock_mhz"]].head(3)
    assert case.info.id == "42f28be938b7"
    assert head.to_numpy().tolist() == [
        [1447393798828, 369732536, 367961866, 1301],
        [2555639648438, 1688975842, 1590102691, 2246],
        [2779760742188, 352410971, 334304926, 1253],
    ]


def test_settings_name_their_bounds() -> None:
    plain = {"name": "x", "cards": ("A10",), "models": ("vit-l",), "configs": ("base",)}
    arms = (Arm(name="plain"), Arm(name="other"))
    with pytest.raises(ValueError, match="cards must be among"):
        FleetGroup(**{**plain, "cards": ("B300",)}, arms=arms)
    with pytest.raises(ValueError, match="ranks must fit on 4 GPUs"):
        FleetGroup(**plain, arms=arms, ranks={8: 1})
    with pytest.raises(ValueError, match="first arm must be plain"):
        FleetGroup(**plain, arms=(Arm(name="odd", confounders=("traffic_mix",)), arms[0]))
    with pytest.raises(ValueError, match="names of their own"):
        FleetGroup(**plain, arms=(arms[0], arms[0]))


def test_names_of_groups_are_their_own() -> None:
    names = [group.name for group in read_matrix()]
    assert len(set(names)) == len(names)


def test_a_written_part_passes_every_check_and_the_audit(tmp_path: Path) -> None:
    places = Places(tmp_path / "suites" / "fleet", tmp_path / "labels" / "fleet")
    chosen = [group for group in groups() if group.name in WRITTEN]
    lines = build_groups(chosen, places, "fleet", "A part of the fleets", jobs=1)
    assert not [line.refused for line in lines if line.refused]
    taxonomy = Taxonomy.load()
    checks = check_suite(places.cases, taxonomy, places.labels)
    assert not {check.name: check.failures for check in checks if check.failures}
    truths = load_truths(places.cases, places.labels)
    assert composition(truths)["verdict"].keys() == {
        "faulty", "healthy", "healthy with decoy", "undecidable",
    }  # fmt: skip
    assert any(len(truth.witness.false_on) > 3 for truth in truths.values() if truth.witness)
    audit = audit_suite(places.cases, taxonomy, places.labels)
    assert audit.passed
    assert not audit.words
    assert not [tell for tell in audit.tells if tell.flagged]
