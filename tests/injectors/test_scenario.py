"""Scenarios and matrices: what they say, and what they refuse."""

from pathlib import Path

import pytest

from cases.errors import InputError
from injectors.build import candidates, split_of
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

FIRST_FAULTS = {
    "storage_fetch_stall",
    "dataloader_cpu_bound",
    "slow_link",
    "unfused_kernels",
    "cpu_contention_colocated",
    "memory_bandwidth_contention",
}


def write(tmp_path, text):
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    return path


def refusal(tmp_path, text):
    with pytest.raises(InputError) as caught:
        read_scenario(write(tmp_path, text))
    return str(caught.value)


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
    assert {fault for _, fault in faults} >= FIRST_FAULTS
    for cause in FIRST_FAULTS:
        levels = {str(arm) for s in scenarios for arm in s.arms.values() if arm.fault == cause}
        assert len(levels) >= 3, cause
    used = {arm.decoy for s in scenarios for arm in s.arms.values() if arm.decoy}
    assert used >= {
        "slow_first_step",
        "low_priority_competitor",
        "hidden_slow_read",
        "cheap_periodic_checkpoint",
    }
    assert {s.ranks for s in scenarios} == {1, 2, 3, 4}
    assert {split_of(s.name) for s in scenarios} == {"train", "dev", "public_test"}


@pytest.mark.parametrize(
    ("job", "possible", "impossible"),
    [
        (
            {"workload": "language_model", "parameters": {"compiled": True}, "ranks": 2},
            {"slow_link", "unfused_kernels", "cpu_contention_colocated"},
            {"storage_fetch_stall", "pp_stage_imbalance", "moe_expert_imbalance"},
        ),
        (
            {"workload": "image_classifier"},
            {"storage_fetch_stall", "dataloader_cpu_bound", "memory_bandwidth_contention"},
            {"slow_link", "unfused_kernels", "embedding_shard_imbalance"},
        ),
        (
            {"workload": "pipeline", "ranks": 2},
            {"slow_link", "pp_stage_imbalance"},
            {"storage_fetch_stall", "unfused_kernels", "moe_expert_imbalance"},
        ),
        ({"workload": "pipeline"}, {"cpu_contention_colocated"}, {"pp_stage_imbalance"}),
        (
            {"workload": "inference_server"},
            {"kv_cache_disabled", "cpu_contention_colocated"},
            {"storage_fetch_stall", "undersized_buckets", "slow_link"},
        ),
    ],
)
def test_candidates_are_the_faults_that_fit_the_job(job, possible, impossible):
    scenario = Scenario.model_validate(
        {"name": "one", "arms": {}, "cases": [{"arm": "healthy"}], **job}
    )
    found = set(candidates(scenario, 0, "all_but_progress"))
    assert possible <= found
    assert not impossible & found
    assert not [cause for cause in found if "cuda" in FAULTS[cause].needs]


def test_fault_must_fit_the_job(tmp_path):
    text = GOOD.replace("image_classifier", "language_model")
    with pytest.raises(InputError, match=r"arm 'a': storage_fetch_stall must have a workload of"):
        read_scenario(write(tmp_path, text))


def test_stages_must_keep_a_layer(tmp_path):
    text = (
        GOOD.replace("image_classifier", "pipeline\nranks: 2")
        .replace("storage_fetch_stall", "pp_stage_imbalance")
        .replace("{megabytes_per_s: 2}", "{layers: 4}")
    )
    with pytest.raises(InputError, match="arm 'a': each of 2 stages must keep one of the 8 layers"):
        read_scenario(write(tmp_path, text))


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


TWO = """
format: evalharness.scenario/1.0
name: two
workload: image_classifier
ranks: 2
arms:
  a: {fault: storage_fetch_stall, parameters: {megabytes_per_s: 2}}
  b: {fault: cpu_contention_colocated, parameters: {processes: 2}}
  c: {fault: storage_fetch_stall, parameters: {megabytes_per_s: 5}}
  d: {decoy: slow_first_step}
  ab: {both: [a, b]}
cases: [{arm: ab}, {arm: healthy}]
"""


def test_two_faults_act_together(tmp_path):
    scenario = read_scenario(write(tmp_path, TWO))
    assert [type(item).__name__ for item in scenario.injections("ab")] == [
        "StorageFetchStall",
        "CpuContention",
    ]
    assert set(scenario.faults()) == {"a", "b", "c"}
    assert {name: len(own) for name, own in scenario.faulty().items()} == {
        "a": 1,
        "b": 1,
        "c": 1,
        "ab": 2,
    }


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[a, b]", "[a, e]", "must combine fault arms, got ['e']"),
        ("[a, b]", "[a, d]", "must combine fault arms, got ['d']"),
        ("[a, b]", "[a, ab]", "must combine fault arms, got ['ab']"),
        ("[a, b]", "[a, c]", "must combine two causes, got storage_fetch_stall twice"),
        ("[a, b]", "[a]", "ab.both"),
        ("{both: [a, b]}", "{both: [a, b], parameters: {x: 1}}", "parameters of their own"),
        ("{both: [a, b]}", "{both: [a, b], fault: slow_link}", "either a fault or a decoy"),
    ],
)
def test_refused_pairs_of_faults(tmp_path, old, new, says):
    assert says in refusal(tmp_path, TWO.replace(old, new))


AUDIT = """
format: evalharness.scenario/1.0
name: three
workload: image_classifier
question: audit
arms:
  a: {fault: storage_fetch_stall, parameters: {megabytes_per_s: 2}}
  more: {ablate: dataloader_cpu_bound, parameters: {workload: {workers: 3}}}
  less: {ablate: storage_fetch_stall, parameters: {knobs: {decode_passes: 0}}}
cases: [{arm: a}, {arm: healthy}]
"""


def test_audit_scenario_takes_suspected_costs_away(tmp_path):
    scenario = read_scenario(write(tmp_path, AUDIT))
    assert scenario.ablations()["more"].cause == "dataloader_cpu_bound"
    assert scenario.settings_of("more") == {"workload": {"workers": 3}}
    assert scenario.settings_of("less") == {}
    assert scenario.build_workload({"workers": 3}).workers == 3
    assert set(scenario.faulty()) == {"a"}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{workers: 3}", "{wrkers: 3}", "wrkers"),
        ("{decode_passes: 0}", "{decode: 0}", "unknown knobs ['decode']"),
        ("{workload: {workers: 3}}", "{started_with: {lanes: 1}}", "unknown settings ['lanes']"),
        ("{arm: a}", "{arm: more}", "is an ablation, which makes no case"),
        ("{arm: a}", "{arm: a, withhold: all_but_progress}", "withhold nothing"),
        ("question: audit", "question: audit\nobjective: ''", "objective"),
    ],
)
def test_refused_audits(tmp_path, old, new, says):
    assert says in refusal(tmp_path, AUDIT.replace(old, new))


def test_audit_without_ablations_is_refused(tmp_path):
    with pytest.raises(InputError, match="headroom was looked for"):
        read_scenario(write(tmp_path, f"{GOOD}question: audit\n"))


def test_runs_are_long_and_profiled_briefly(tmp_path):
    long = f"{GOOD}shape: run\nsteps: 500\nprofiled_steps: 4\n"
    assert read_scenario(write(tmp_path, long)).shape == "run"
    for changed in (long.replace("500", "499"), long.replace("steps: 4", "steps: 11")):
        with pytest.raises(InputError, match="a run must have at least 500 steps"):
            read_scenario(write(tmp_path, changed))


def test_new_options_leave_the_digest_of_old_scenarios(tmp_path):
    plain = read_scenario(write(tmp_path, GOOD))
    spelled = f"{GOOD}shape: snapshot\nquestion: regression\nstacks: false\n"
    assert plain.digest == read_scenario(write(tmp_path, spelled)).digest
    assert plain.digest != read_scenario(write(tmp_path, f"{GOOD}stacks: true\n")).digest


STEPS_ALONE = """
format: evalharness.scenario/1.0
name: backward
workload: language_model
ranks: 2
arms:
  a: {fault: comm_overlap_lost, parameters: {buckets: 3}}
  b: {fault: process_suspended, parameters: {stopped_fraction: 0.3}}
cases: [{arm: a, withhold: all_but_steps}, {arm: healthy, withhold: all_but_steps}]
"""


def test_steps_are_left_where_their_phases_tell_no_cause(tmp_path):
    scenario = read_scenario(write(tmp_path, STEPS_ALONE))
    found = set(candidates(scenario, 0, "all_but_steps"))
    assert {"slow_link", "comm_overlap_lost", "undersized_buckets"} <= found
    assert found < set(candidates(scenario, 0, "all_but_progress"))
    assert "process_suspended" not in found


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{arm: a, w", "{arm: b, w", "the phases of steps tell process_suspended"),
        ("language_model", "mixture_of_experts", "ranks that meet in backward alone"),
    ],
)
def test_steps_that_tell_the_cause_are_refused(tmp_path, old, new, says):
    assert says in refusal(tmp_path, STEPS_ALONE.replace(old, new))
