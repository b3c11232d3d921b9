"""Two faults at once, audits, long runs and stacks: recorded for real, in small jobs.

What the trials say is put in by hand afterwards, so that the rules meet known numbers and the
signals are real.
"""

import json
from itertools import cycle

import pyarrow.parquet as pq
import pytest

pytest.importorskip("torch", reason="recording needs torch: pip install 'evalharness[record]'")

from cases.bundle import Suite
from cases.documents import read_json, read_record, write_json
from cases.taxonomy import Taxonomy
from cases.truth import Truth
from harness.audit.vocabulary import vocabulary
from harness.audit.words import leaked_word
from harness.checks import check_suite
from injectors.build import build
from injectors.faults import FAULTS
from injectors.matrix import finish, places, run_session
from injectors.public import this_environment
from injectors.scenario import OBJECTIVE, Scenario

GC, SAVING = "python_gc_pause", "sync_checkpoint"  # a busy machine looks like neither
BOTH = {
    "format": "evalharness.scenario/1.0",
    "name": "small-both",
    "workload": "language_model",
    "pinned": True,
    "parameters": {"d_model": 64, "sequence_length": 16, "batch_size": 2, "vocabulary": 64},
    "steps": 24,
    "profiled_steps": 2,
    "stacks": True,
    "trials": {"blocks": 4, "fresh": 4, "steps": 4, "null_pairs": 8},
    "arms": {
        "a": {"fault": GC, "parameters": {"records_per_micro_batch": 20000}},
        "b": {"fault": SAVING, "parameters": {"every": 2, "megabytes": 8}},
        "ab": {"both": ["a", "b"]},
        "less": {"ablate": "unfused_kernels", "parameters": {"knobs": {"eager_layers": 0}}},
    },
    "cases": [{"arm": "ab"}, {"arm": "healthy"}, {"arm": "a"}, {"arm": "b"}],
}
WINDOWS = {"reference": 1.0, "case-1": 1.0, "case-0": 1.9, "case-2": 1.5, "case-3": 1.4}
WOBBLE = (0.998, 1.0, 1.001, 1.0, 1.002)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A session's folder whose windows take as long a step as WINDOWS says, times 10 ms."""
    folder = tmp_path_factory.mktemp("session")
    run_session(Scenario.model_validate(BOTH), folder, False, lambda *_: None)
    for window, ratio in WINDOWS.items():
        last_as_if(folder / window, ratio)
    return folder


def last_as_if(window, ratio):
    """Let every step of a recorded window have taken `ratio` times 10 ms."""
    path = window / "steps.parquet"
    table = pq.read_table(path)
    frame = table.to_pandas().assign(duration_ns=int(ratio * 1e7))
    pq.write_table(type(table).from_pandas(frame, schema=table.schema), path)


def time_as_if(folder, ratios):
    """Let every trial of an arm have taken its ratio times 10 ms a step."""
    wobble, result = cycle(WOBBLE), read_json(folder / "result.json")
    for block in result["blocks"]:
        for arm in block["seconds"]:
            block["seconds"][arm] = 0.01 * ratios.get(arm, 1.0) * next(wobble)
        block["null"] = [{"baseline": 0.01, "null": 0.01 * next(wobble)} for _ in block["null"]]
    write_json(folder / "result.json", result)


@pytest.fixture
def made(recorded, tmp_path):
    """Build a suite from the session, with ratios of the arms' trials put in by hand."""

    def make(ratios, **changes):
        scenario = Scenario.model_validate(BOTH | changes)
        time_as_if(recorded, ratios)
        environment, _ = this_environment(2, {})
        target = places(tmp_path, "kinds")
        outcome = build(scenario, recorded, environment, 0, target)
        if not outcome.made:
            return outcome, None, []
        finish(target, "kinds", "Kinds")
        truths = [read_record(path, Truth) for path in target.labels.glob("*.json")]
        return outcome, Suite.open(target.cases), truths

    return make


def failures(suite):
    return {c.name: c.failures for c in check_suite(suite.folder, Taxonomy.load()) if c.failures}


def two_faults(truths):
    return [truth for truth in truths if len(truth.faults) == 2]


def test_both_faults_are_labelled_with_their_shares(made):
    outcome, suite, truths = made({"a": 1.5, "b": 1.4, "ab": 1.9})
    assert outcome.refused == {}
    (truth,) = two_faults(truths)
    assert [fault.cause for fault in truth.faults] == [GC, SAVING]
    assert [fault.redundancy_group for fault in truth.faults] == [None, None]
    # Shapley: (0.5 + 0.5) / 2 and (0.4 + 0.4) / 2 of 1.9.
    assert truth.faults[0].lost_fraction.value == pytest.approx(0.5 / 1.9, abs=0.005)
    assert truth.faults[1].lost_fraction.value == pytest.approx(0.4 / 1.9, abs=0.005)
    assert truth.twin in truth.witness.false_on
    assert failures(suite) == {}


def test_faults_that_hide_each_other_are_one_redundancy_group(made):
    _, suite, truths = made({"a": 1.9, "b": 1.9, "ab": 1.9})
    (truth,) = two_faults(truths)
    assert {fault.redundancy_group for fault in truth.faults} == {"ab"}
    assert failures(suite) == {}


def test_fault_that_costs_nothing_beside_the_other_is_refused(made):
    outcome, _, truths = made({"a": 1.9, "b": 1.4, "ab": 1.9})
    assert two_faults(truths) == []
    assert "neither separate nor redundant" in outcome.refused["small-both/ab/nothing"]


def test_label_of_two_faults_is_decided_again(made):
    _, suite, truths = made({"a": 1.5, "b": 1.4, "ab": 1.9})
    (truth,) = two_faults(truths)
    path = suite.folder.parents[1] / "labels" / "kinds" / f"{truth.id}.json"
    label = json.loads(path.read_text())
    label["validation"]["alone"][0]["acceptance_s"] = truth.validation.acceptance.treated_s
    path.write_text(json.dumps(label))
    assert any("neither separate" in problem for problem in failures(suite)["joint"])


def test_audit_states_its_objective_and_has_no_reference(made):
    outcome, suite, truths = made({"a": 1.5, "b": 1.4, "ab": 1.9}, question="audit")
    assert outcome.refused == {}
    assert sorted(truth.verdict for truth in truths) == ["faulty"] * 3 + ["healthy"]
    for truth in truths:
        case = suite.case(truth.id)
        assert case.reference is None
        assert (case.info.question, case.info.objective) == ("audit", OBJECTIVE)
        ablations = [tried.cause for tried in truth.validation.ablations]
        assert ablations == (["unfused_kernels"] if truth.verdict == "healthy" else [])
        assert truth.witness is None or "reference" not in truth.witness.sql
    assert failures(suite) == {}


def test_audit_of_a_fault_that_only_a_comparison_shows_is_refused(made, monkeypatch):
    monkeypatch.setattr(FAULTS[GC], "audit_witness", lambda self: None)
    outcome, *_ = made({"a": 1.5, "b": 1.4, "ab": 1.9}, question="audit")
    assert set(outcome.refused) == {"small-both/a/nothing", "small-both/ab/nothing"}
    assert all("compares with a reference run" in reason for reason in outcome.refused.values())


def test_healthy_audit_with_headroom_is_refused(made):
    ratios = {"a": 1.5, "b": 1.4, "ab": 1.9, "less": 0.8}
    outcome, *_ = made(ratios, question="audit")
    assert not outcome.made
    reason = outcome.refused["small-both/healthy/nothing"]
    assert "not shown to be as fast as without unfused_kernels, faulty: ratio 1.2" in reason


def test_audit_whose_headroom_nobody_looked_for_fails_its_check(made):
    _, suite, truths = made({"a": 1.5, "b": 1.4, "ab": 1.9}, question="audit")
    (healthy,) = [truth for truth in truths if truth.verdict == "healthy"]
    path = suite.folder.parents[1] / "labels" / "kinds" / f"{healthy.id}.json"
    label = json.loads(path.read_text())
    label["validation"]["ablations"] = []
    path.write_text(json.dumps(label))
    assert failures(suite)["headroom"] == [f"{healthy.id}: no headroom was looked for"]


def test_stacks_name_the_same_functions_with_and_without_a_fault(made):
    _, suite, truths = made({"a": 1.5, "b": 1.4, "ab": 1.9})
    words = {truth.id: vocabulary(suite.case(truth.id)) for truth in truths}
    forbidden = [cause.replace("_", " ") for cause in Taxonomy.load().causes if "_" in cause]
    for names in words.values():
        assert any(category == "python_function" for category, _ in names)
        assert [name for _, name in names if leaked_word(name, forbidden)] == []
    files = {case_id: {name.partition("(")[0] for _, name in own} for case_id, own in words.items()}
    for truth in truths:
        if truth.verdict == "faulty":
            only = files[truth.id] ^ files[truth.twin]
            assert not {name for name in only if name.startswith("job/")}


def test_run_has_telemetry_throughout_and_a_short_profile(tmp_path):
    small = {"arms": {}, "cases": [{"arm": "healthy"}], "stacks": False}
    run = {"name": "small-run", "shape": "run", "steps": 500, "profiled_steps": 2}
    scenario = Scenario.model_validate(BOTH | small | run)
    run_session(scenario, tmp_path / "s", False, lambda *_: None)
    for window in ("reference", "case-0"):
        last_as_if(tmp_path / "s" / window, 1.0)
    time_as_if(tmp_path / "s", {})
    target = places(tmp_path, "runs")
    environment, _ = this_environment(2, {})
    outcome = build(scenario, tmp_path / "s", environment, 0, target)
    assert outcome.refused == {}
    finish(target, "runs", "Runs")
    case = Suite.open(target.cases).case(outcome.made[0])
    assert case.info.shape == "run"
    assert len(case.steps) == 500 == len(case.reference.steps)
    end = case.steps["start_ns"].iloc[-1]
    assert case.host["time_ns"].max() > 0.7 * end
    profiled = case.trace_events[case.trace_events["name"].str.startswith("ProfilerStep")]
    assert len(profiled) == 2
    assert profiled["start_ns"].min() > 0.9 * end
    size = sum(path.stat().st_size for path in (target.cases / outcome.made[0]).rglob("*.*"))
    assert size < 1_500_000
