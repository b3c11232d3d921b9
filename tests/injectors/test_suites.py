"""Suites that are built on demand: the same everywhere, and labels that hold."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from cases.bundle import Suite
from cases.digest import bytes_digest
from cases.documents import read_record, write_record
from cases.errors import HarnessError, InputError, RecordError
from cases.kineto.compressed import gunzip
from cases.taxonomy import Taxonomy
from cases.truth import Truth
from harness.checks import check_suite, composition
from harness.judge import load_truths
from injectors.sim.made import MadeCase
from injectors.sim.matrix import read
from injectors.sim.suite import whole
from injectors.suites import SUITES, build, plan_of


def test_the_content_depends_neither_on_the_backend_nor_on_the_number_of_processes(
    small_suite: Path, small_matrix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALHARNESS_SIM_BACKEND", "numpy")
    info = build(str(small_matrix), tmp_path, jobs=2)
    assert info == Suite.open(small_suite).info
    assert info.labels == "public"


def test_a_built_suite_has_cases_of_each_verdict_whose_labels_hold(small_suite: Path) -> None:
    checks = check_suite(small_suite, Taxonomy.load())
    assert {check.name: check.failures for check in checks if check.failures} == {}
    assert {"label_rule", "witness", "shipped", "digest"} <= {check.name for check in checks}
    verdicts = composition(load_truths(small_suite))["verdict"]
    assert verdicts["faulty"] >= 3 and verdicts["healthy"] >= 3 and verdicts["undecidable"] >= 2
    assert all(Suite.open(small_suite).case(c).info.provenance.backend == "simulated"
               for c in Suite.open(small_suite).case_ids)  # fmt: skip


def test_a_label_that_states_another_cost_is_found(small_suite: Path, tmp_path: Path) -> None:
    shutil.copytree(small_suite, tmp_path / "suites" / "small")
    shutil.copytree(small_suite.parents[1] / "labels/small_matrix", tmp_path / "labels" / "small")
    faulty = next(t for t in load_truths(small_suite).values() if t.verdict == "faulty")
    fault = faulty.faults[0]
    cost = fault.lost_fraction.model_copy(update={"value": fault.lost_fraction.value / 2})
    changed = fault.model_copy(update={"lost_fraction": cost})
    label = faulty.model_copy(update={"faults": (changed, *faulty.faults[1:])})
    write_record(tmp_path / "labels" / "small" / f"{faulty.id}.json", label)
    checks = check_suite(tmp_path / "suites" / "small", Taxonomy.load())
    failed = {check.name for check in checks if check.failures}
    assert {"label_rule", "suite_digest"} <= failed


def test_a_private_seed_makes_another_suite_of_the_same_kind(
    small_suite: Path, small_matrix: Path, tmp_path: Path
) -> None:
    public = Suite.open(small_suite).info
    private = build(str(small_matrix), tmp_path, private_seed=7, jobs=1)
    folder = tmp_path / "suites" / "small_matrix_private"
    assert private.name == "small_matrix_private" and private.labels == "private_seed"
    assert private.digest != public.digest
    assert not {*private.cases} & {*public.cases}
    assert not {*private.cases.values()} & {*public.cases.values()}
    groups = [{t.group for t in load_truths(f).values()} for f in (small_suite, folder)]
    assert not groups[0] & groups[1]
    assert not [check for check in check_suite(folder, Taxonomy.load()) if check.failures]


def contents(case: MadeCase) -> tuple[object, ...]:
    traces = {rank: bytes_digest(gunzip(t, "", 2**30)) for rank, t in case.traces.items()}
    tables = {name: frame.to_csv() for name, frame in case.tables.items()}
    return case.info, case.truth, traces, tables


def test_a_group_is_made_the_same_again(small_matrix: Path) -> None:
    first, second = (whole(read(small_matrix))[0].make() for _ in range(2))
    assert first.refused == second.refused
    assert [contents(case) for case in first.cases] == [contents(case) for case in second.cases]


def test_seeds_change_every_run_and_no_job(small_matrix: Path) -> None:
    public, private = whole(read(small_matrix)), whole(read(small_matrix), 7)
    for mine, other in zip(public, private, strict=True):
        assert mine.key != other.key and mine.digest != other.digest
        assert mine.scenario.workload == other.scenario.workload
        assert mine.scenario.parameters == other.scenario.parameters


def test_an_unknown_suite_is_an_error_that_lists_those_there_are() -> None:
    with pytest.raises(InputError, match=r"simulated_core.*simulated_smoke.*found 'simulated'"):
        plan_of("simulated")


def test_a_matrix_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: must be readable"):
        build(str(tmp_path / "none.yaml"), tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("workload: ddp_transformer", "workload: nonsense", r"configurations\..*unknown workload"),
        ("layers:", "layerz:", r"configurations\..*: layerz: "),
    ],
)
def test_a_matrix_whose_jobs_break_their_rules(
    small_matrix: Path, tmp_path: Path, old: str, new: str, says: str
) -> None:
    text = small_matrix.read_text()
    assert old in text
    broken = tmp_path / "broken.yaml"
    broken.write_text(text.replace(old, new))
    with pytest.raises(RecordError, match=rf"broken\.yaml: {says}"):
        build(str(broken), tmp_path)


def test_a_matrix_with_a_grade_that_its_fault_does_not_know(
    small_matrix: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.yaml"
    document = yaml.safe_load(small_matrix.read_text())
    cause = next(iter(document["faults"]))
    document["faults"][cause][0]["nonsense"] = 1
    broken.write_text(yaml.safe_dump(document))
    with pytest.raises(RecordError, match=rf"broken\.yaml: a grade of {cause}: nonsense: "):
        build(str(broken), tmp_path)


def test_a_matrix_of_which_nothing_can_be_shown(small_matrix: Path, tmp_path: Path) -> None:
    text = (
        small_matrix.read_text()
        .replace("groups: 2", "groups: 1")
        .replace("groups: 1", "groups: 0", 1)
    )
    (tmp_path / "none.yaml").write_text(text.replace("groups: 1", "groups: 0"))
    with pytest.raises(HarnessError, match="must make at least one case"):
        build(str(tmp_path / "none.yaml"), tmp_path)


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_has_groups_with_names_and_digests_of_their_own(name: str) -> None:
    groups = SUITES[name].groups(None)
    assert len({group.name for group in groups}) == len({group.digest for group in groups})
    assert len(groups) == len({group.name for group in groups}) > 5


def test_labels_are_read_from_beside_the_suite(small_suite: Path) -> None:
    labels = small_suite.parents[1] / "labels" / "small_matrix"
    for case in Suite.open(small_suite).case_ids:
        assert read_record(labels / f"{case}.json", Truth).id == case
