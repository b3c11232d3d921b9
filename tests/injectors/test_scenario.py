"""Scenarios and matrices: what they say, and what they refuse."""

from pathlib import Path

import pytest

from cases.errors import InputError
from injectors.build import candidates, split_of
from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.scenario import Scenario, read_matrix, read_scenario

SHIPPED = Path(__file__).parents[2] / "injectors" / "scenarios"
GOOD = """
format: evalharness.scenario/1.0
name: one
workload: image_classifier
arms: {a: {fault: storage_fetch_stall, parameters: {megabytes_per_s: 2}}}
cases: [{arm: a}, {arm: healthy}]
"""


def write(tmp_path, text):
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    return path


def test_good_scenario(tmp_path):
    scenario = read_scenario(write(tmp_path, GOOD))
    assert scenario.faults()["a"].megabytes_per_s == 2
    assert scenario.digest == read_scenario(write(tmp_path, GOOD)).digest


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("storage_fetch_stall", "storage_fetch_stal", "unknown fault 'storage_fetch_stal'"),
        ("{megabytes_per_s: 2}", "{megabytes_per_s: 0}", "greater than 0"),
        ("{megabytes_per_s: 2}", "{megabytes_per_s: 2, colour: red}", "colour"),
        ("image_classifier", "image_clasifier", "unknown workload 'image_clasifier'"),
        ("{arm: a}", "{arm: b}", "case arm 'b' must be 'healthy' or one of ['a']"),
        ("fault:", "decoy:", "unknown decoy 'storage_fetch_stall'"),
        ("name: one", "name: one\nname: two", "key 'name' stands twice"),
        ("name: one", "name: one\nranks: 0", "greater than 0, found 0"),
        ("scenario/1.0", "scenario/2.0", "evalharness.scenario/1.0"),
        ("name: one", "name: one\nsteps: 20\nprofiled_steps: 19", "profiled_steps must be below"),
    ],
)
def test_refusals_name_what_must_hold(tmp_path, old, new, says):
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_scenario(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


def test_slow_link_needs_two_ranks(tmp_path):
    text = GOOD.replace("storage_fetch_stall", "slow_link").replace(
        "{megabytes_per_s: 2}", "{rank: 0, rate_mbit_per_s: 100}"
    )
    with pytest.raises(InputError, match="at least 2 ranks"):
        read_scenario(write(tmp_path, text))


def test_matrix_merges_defaults_key_by_key(tmp_path):
    path = tmp_path / "matrix.yaml"
    path.write_text(
        "format: evalharness.matrix/1.0\n"
        "defaults: {d: {workload: language_model, seed: 3, parameters: {layers: 3, heads: 2}}}\n"
        "scenarios:\n"
        "  - {extends: d, name: x, parameters: {heads: 8}, arms: {}, cases: [{arm: healthy}]}\n"
    )
    (scenario,) = read_matrix(path)
    assert scenario.parameters == {"layers": 3, "heads": 8}
    assert scenario.seed == 3


def test_shipped_matrix_is_as_promised():
    scenarios = read_matrix(SHIPPED / "recorded_cpu.yaml")
    faults = [(s, arm.fault) for s in scenarios for arm in s.arms.values() if arm.fault]
    assert len(scenarios) >= 30
    assert {fault for _, fault in faults} == set(FAULTS)
    for cause in FAULTS:
        levels = {str(arm) for s in scenarios for arm in s.arms.values() if arm.fault == cause}
        assert len(levels) >= 3, cause
    used = {arm.decoy for s in scenarios for arm in s.arms.values() if arm.decoy}
    assert used == set(DECOYS)
    assert {s.ranks for s in scenarios} == {1, 2, 4}
    assert {split_of(s) for s in scenarios} == {"train", "dev", "public_test"}


def test_candidates_follow_the_workload():
    (scenario,) = [
        s for s in read_matrix(SHIPPED / "recorded_cpu.yaml") if s.name == "compiled-pair-1"
    ]
    assert isinstance(scenario, Scenario)
    assert set(candidates(scenario)) == {
        "slow_link",
        "unfused_kernels",
        "cpu_contention_colocated",
        "memory_bandwidth_contention",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("scenarios: [3]", "scenarios.0: must be a mapping, found 3"),
        ("scenarios: []\ndefaults: [1]", "defaults: must be a mapping, found [1]"),
        ("scenarios: [{extends: d}]\ndefaults: {d: 4}", "defaults.d: must be a mapping, found 4"),
        ("scenarios: [{extends: e}]\ndefaults: {d: {}}", "scenarios.0.extends: must be one of"),
        ("scenarios: 7", "scenarios: must be a mapping with a list"),
    ],
)
def test_broken_matrix_is_refused_by_field(tmp_path, text, says):
    path = write(tmp_path, f"format: evalharness.matrix/1.0\n{text}\n")
    with pytest.raises(InputError) as caught:
        read_matrix(path)
    assert says in str(caught.value)


def test_fault_must_act_on_a_rank_that_is_there(tmp_path):
    text = GOOD.replace("storage_fetch_stall", "slow_link").replace(
        "{megabytes_per_s: 2}", "{rank: 2, rate_mbit_per_s: 100}"
    )
    with pytest.raises(InputError, match="arm 'a': rank must be below 2, got 2"):
        read_scenario(write(tmp_path, text.replace("name: one", "name: one\nranks: 2")))
