"""Training, files and answers of the forest, on a dozen recorded cases."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest

from cases.bundle import PACKAGED, Suite
from cases.errors import InputError
from harness.child.diagnoser import load as load_diagnoser
from harness.diagnosers.features import Facts
from harness.diagnosers.features.traces import Coverage
from harness.diagnosers.forest import (
    answer,
    calibrated,
    diagnose,
    likely_candidates,
    second_faults,
    trained,
)
from harness.diagnosers.forest.columns import case_row
from harness.diagnosers.forest.model import SHIPPED, Forest, load, save
from harness.diagnosers.forest.observe import Observed
from harness.diagnosers.rules.rule import Rule
from harness.judge import load_labels
from harness.specs import parse_spec
from harness.training.causes import cause_trees
from harness.training.fit import best_threshold, calibration, fit
from harness.training.samples import Sample, read_samples
from harness.training.second import count_echoes, grow_second
from scorers import Label

RECORDED = PACKAGED / "recorded_cpu"
CAUSES = ("storage_fetch_stall", "dataloader_cpu_bound")
MAIN, ECHO, SECOND = "slow_link", "kernel_regression", "python_gc_pause"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite.open(RECORDED)


@pytest.fixture(scope="module")
def samples(suite: Suite) -> list[Sample]:
    labels = load_labels(RECORDED)
    train = [label for label in labels if label.split == "train" and label.verdict != "undecidable"]
    faulty = [
        item for item in train if [f.cause for f in item.faults] in [[cause] for cause in CAUSES]
    ]
    placed = [item for item in train if item.faults and item.faults[0].locus.scope == "rank"]
    placed = [item for item in placed if len(item.topology.ranks) > 1 and len(item.faults) == 1]
    healthy = [
        item for item in train if item.verdict == "healthy" and item.question == "regression"
    ]
    return read_samples(suite, [*faulty[:8], *placed[:3], *healthy[:6]])


@pytest.fixture(scope="module")
def forest(samples: list[Sample], suite: Suite) -> Forest:
    return fit(samples, samples, suite, lambda line: None)


def test_finds_again_what_it_was_shown(forest: Forest, samples: list[Sample]) -> None:
    for sample in samples:
        said = answer(sample.seen, forest)
        assert said.verdict == sample.label.verdict
        blamed = [finding.cause for finding in said.findings]
        assert blamed == [fault.cause for fault in sample.label.faults]


def test_file_gives_the_same_answers(forest: Forest, samples: list[Sample], tmp_path: Path) -> None:
    path = tmp_path / "forest.skops"
    save(forest, path)
    assert b"pickle" not in b"".join(
        zipfile.ZipFile(path).read(name) for name in zipfile.ZipFile(path).namelist()[:1]
    )
    case = samples[0].seen.facts.case
    assert diagnose(case, {"model": str(path)}) == answer(samples[0].seen, forest)
    assert load(path).suite == forest.suite


def test_file_is_read_once_and_not_for_each_case(forest: Forest, tmp_path: Path) -> None:
    path = tmp_path / "own.skops"
    save(forest, path)
    target = {"search": [], "module": "harness.diagnosers.forest", "function": "diagnose"}
    trained.cache_clear()
    load_diagnoser(target, {"model": str(path)})
    assert trained.cache_info().currsize == 1
    path.unlink()
    assert trained(str(path)).suite == forest.suite


def test_another_feature_version_is_refused(forest: Forest, tmp_path: Path) -> None:
    save(replace(forest, feature_version="0"), tmp_path / "old.skops")
    with pytest.raises(InputError, match=r"feature_version .* \(train anew"):
        load(tmp_path / "old.skops")


def test_other_types_are_refused(tmp_path: Path) -> None:
    import skops.io

    path = tmp_path / "strange.skops"
    skops.io.dump({"format": Path("x")}, path)
    with pytest.raises(InputError, match="must hold no types but"):
        load(path)


def test_what_is_no_forest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="train forest"):
        load(tmp_path / "none.skops")
    (tmp_path / "text.skops").write_text("no zip")
    with pytest.raises(InputError, match="must be a file that `train forest` wrote"):
        load(tmp_path / "text.skops")


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("at", [0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_a_damaged_file_is_refused(at: float, compression: int, tmp_path: Path) -> None:
    path = tmp_path / "damaged.skops"
    with zipfile.ZipFile(SHIPPED) as whole, zipfile.ZipFile(path, "w", compression) as copy:
        for name in whole.namelist():
            copy.writestr(name, whole.read(name))
    data = bytearray(path.read_bytes())
    begin = int(at * len(data)) - 100
    data[begin : begin + 100] = bytes(100)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"damaged\.skops: must"):
        load(path)


def test_threshold_silences(forest: Forest, samples: list[Sample]) -> None:
    said = answer(samples[0].seen, replace(forest, threshold=1.0))
    assert said.verdict == "abstain" and said.candidates[0] == samples[0].label.faults[0].cause


def test_own_forest_is_part_of_the_digest(forest: Forest, tmp_path: Path) -> None:
    path = tmp_path / "own.skops"
    save(forest, path)
    before = parse_spec(f"mine=forest:{path}")
    assert before.task.shown == (path,) and before.name == "mine"
    path.write_bytes(path.read_bytes() + b"x")
    assert parse_spec(f"forest:{path}").digest != before.digest
    with pytest.raises(InputError, match="train forest"):
        parse_spec("forest:nowhere.skops")
    path.write_bytes(b"no zip")
    with pytest.raises(InputError, match=r"own\.skops: must be a file that `train forest` wrote"):
        parse_spec(f"forest:{path}")


def test_shipped_forest_is_small_and_fits() -> None:
    assert SHIPPED.stat().st_size < 1_000_000
    assert load(SHIPPED).suite_name == "simulated_core"


def pretend(number: int, faults: tuple[str, ...], held: tuple[str, ...]) -> Sample:
    """A case of a group of its own, with rules that hold; its numbers tell which faults it has."""
    values = {f"x.{cause}": float(cause in faults) for cause in (MAIN, ECHO, SECOND)}
    values["on_gpu"] = 1.0
    rules = tuple(Rule(cause, lambda facts: True, ()) for cause in held)
    seen = Observed(cast(Facts, None), values, pd.DataFrame(), rules, ())
    of = SimpleNamespace(
        group=str(number), faults=[SimpleNamespace(cause=cause) for cause in faults]
    )
    return Sample(seen, cast(Label, of))


@pytest.fixture(scope="module")
def echoing() -> list[Sample]:
    """A rule that often holds beside the main fault's, and one that does with its own fault."""
    alone = [pretend(i, (MAIN,), (MAIN, ECHO) if i % 2 else (MAIN,)) for i in range(20)]
    own = [pretend(20 + i, (cause,), (cause,)) for i in range(8) for cause in (ECHO, SECOND)]
    both = [pretend(40 + i, (MAIN, SECOND), (MAIN, SECOND, ECHO)) for i in range(8)]
    return [*alone, *own, *both]


def test_echoes_are_counted_where_a_fault_is_alone(echoing: list[Sample]) -> None:
    alone, echoes = count_echoes(echoing)
    assert alone == {MAIN: 20, ECHO: 8, SECOND: 8}
    assert echoes == {MAIN: {ECHO: 10}, ECHO: {}, SECOND: {}}


def test_a_second_fault_is_told_from_an_echo(forest: Forest, echoing: list[Sample]) -> None:
    features = [f"x.{cause}" for cause in (MAIN, ECHO, SECOND)]
    (alone, echoes), trees = count_echoes(echoing), cause_trees(echoing, features)
    taught = replace(
        forest,
        cause=trees,
        alone=alone,
        echoes=echoes,
        second=grow_second(echoing, features),
        on_gpu=[1.0],
    )
    seen = echoing[-1].seen
    shares = trees.predict_proba(case_row(seen, features))[0]
    ((cause, likely),) = second_faults(seen, taught, MAIN, shares)
    assert cause == SECOND and likely > 0.5
    assert second_faults(seen, replace(taught, second=None), MAIN, shares) == []
    assert second_faults(echoing[0].seen, taught, MAIN, shares) == []  # no other rule holds
    elsewhere = replace(taught, on_gpu=[0.0])  # on jobs like this one no echo was counted
    assert second_faults(seen, elsewhere, MAIN, shares) == []


def test_where_no_case_has_two_faults_none_is_learnt(echoing: list[Sample]) -> None:
    lone = [sample for sample in echoing if len(sample.label.faults) == 1]
    assert grow_second(lone, [f"x.{MAIN}"]) is None
    assert grow_second(echoing[:1], [f"x.{MAIN}"]) is None


def test_threshold_by_hand() -> None:
    blamed = [(0.9, True), (0.6, True), (0.5, False), (0.3, False)]
    assert best_threshold(blamed) == 0.55  # two right, none wrong


def test_calibration_moves_to_the_share_that_is_right() -> None:
    sure = [(0.9, True)] * 9 + [(0.9, False)] + [(0.2, True)] * 2 + [(0.2, False)] * 8
    fitted = calibration(sure)
    assert calibrated(0.9, fitted) == pytest.approx(0.9, abs=0.07)
    assert calibrated(0.2, fitted) == pytest.approx(0.2, abs=0.07)
    assert calibration([(0.5, True)] * 3) == [0.0, 1.0]


def test_candidates_of_the_most_alike() -> None:
    known = {"gpu": ["power_cap"], "engine,logs": ["kv_cache_preemption"]}
    assert likely_candidates(["gpu.power_w"], known) == ("power_cap",)
    assert likely_candidates(["engine"], known) == ("kv_cache_preemption",)
    assert likely_candidates(["engine"], {}) == ()


def test_coverage_by_hand() -> None:
    covered = Coverage(np.array([0.0, 5.0, 20.0]), np.array([10.0, 10.0, 5.0]))  # 0-15, 20-25
    assert (covered.total, covered.span) == (20.0, 25.0)
    found = covered.within(np.array([-5.0, 10.0, 15.0]), np.array([5.0, 22.0, 20.0]))
    assert found.tolist() == [5.0, 7.0, 0.0]
