"""The shipped suite is what the README promises, and its scores are what they must be."""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from cases.bundle import PACKAGED, Suite
from harness import judge
from injectors.workloads import WORKLOADS

FOLDER = PACKAGED / "recorded_cpu"
COMMAND = str(Path(sys.executable).with_name("evalharness"))
MAX_BYTES = 80e6
FIRST_FAULTS = {
    "storage_fetch_stall",
    "dataloader_cpu_bound",
    "slow_link",
    "unfused_kernels",
    "cpu_contention_colocated",
    "memory_bandwidth_contention",
}


@pytest.fixture(scope="module")
def truths():
    return judge.load_truths(FOLDER)


@pytest.fixture(scope="module")
def cases():
    suite = Suite.open(FOLDER)
    return {case_id: suite.case(case_id) for case_id in suite.case_ids}


def evalharness(*arguments, cwd=None):
    done = subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_composition(truths):
    verdicts = Counter(truth.verdict for truth in truths.values())
    assert len(truths) >= 200
    assert len({truth.group for truth in truths.values()}) >= 60
    assert len({fault.cause for truth in truths.values() for fault in truth.faults}) >= 24
    assert verdicts["undecidable"] >= 20
    assert 0.25 <= verdicts["healthy"] / len(truths) <= 0.42


def test_each_of_the_first_faults_is_shipped(truths):
    faulty = [truth for truth in truths.values() if truth.verdict == "faulty"]
    assert {truth.faults[0].cause for truth in faulty} >= FIRST_FAULTS
    assert {truth.faults[0].locus.scope for truth in faulty} >= {"job", "rank", "link"}


def test_each_of_the_first_faults_has_three_severities(truths):
    injected = defaultdict(set)
    for truth in truths.values():
        if truth.verdict == "faulty" and len(truth.faults) == 1:
            arm = truth.recipe["scenario"]["arms"][truth.recipe["case"]["arm"]]
            injected[truth.faults[0].cause].add(json.dumps(arm["parameters"], sort_keys=True))
    assert min(len(injected[cause]) for cause in FIRST_FAULTS) >= 3, injected


def test_two_faults_at_once(truths):
    two = [truth for truth in truths.values() if len(truth.faults) == 2]
    assert len(two) >= 15
    for truth in two:
        assert [part.cause for part in truth.validation.alone] == [f.cause for f in truth.faults]
    groups = [{fault.redundancy_group for fault in truth.faults} for truth in two]
    assert {None} in groups
    assert any(len(group) == 1 and None not in group for group in groups)


def test_workloads_ranks_shapes_and_questions(cases):
    infos = [case.info for case in cases.values()]
    assert {info.workload.name for info in infos} == set(WORKLOADS)
    assert {info.kind for info in infos} == {"training", "inference"}
    assert {len(info.topology.ranks) for info in infos} == {1, 2, 3, 4}
    assert {info.question for info in infos} == {"regression", "audit"}
    assert {info.shape for info in infos} == {"snapshot", "run"}
    assert {info.provenance.backend for info in infos} == {"torch_cpu"}


def test_long_runs_are_long_and_watched_throughout(cases):
    runs = [case for case in cases.values() if case.info.shape == "run"]
    assert len(runs) >= 6
    for case in (run for run in runs if run.has("host")):
        steps = case.steps
        assert steps["step"].max() + 1 >= 500
        end_ns = (steps["start_ns"] + steps["duration_ns"]).max()
        gaps = case.host["time_ns"].sort_values().diff().dropna()
        assert case.host["time_ns"].max() > 0.9 * end_ns and gaps.max() < 0.1 * end_ns


def test_healthy_audits_had_their_headroom_looked_for(cases, truths):
    audits = [truths[name] for name, case in cases.items() if case.info.question == "audit"]
    healthy = [truth for truth in audits if truth.verdict == "healthy"]
    assert healthy and len(audits) > len(healthy)
    assert all(truth.validation.ablations for truth in healthy)


def test_overhead_of_the_profiler_is_stated(cases):
    for case in cases.values():
        stated = case.info.provenance.profiler_overhead
        assert (stated is not None) == ("trace_events" in case.info.signals.present)


def test_size():
    files = [*FOLDER.rglob("*"), *(FOLDER.parents[1] / "labels" / "recorded_cpu").rglob("*")]
    assert sum(path.stat().st_size for path in files if path.is_file()) < MAX_BYTES


def test_decoys_of_every_kind(truths):
    names = {decoy.name for truth in truths.values() for decoy in truth.decoys}
    assert names >= {
        "slow_first_step",
        "low_priority_competitor",
        "hidden_slow_read",
        "cheap_periodic_checkpoint",
    }


def test_withholding_gives_nothing_away(truths):
    verdicts = defaultdict(list)
    for truth in truths.values():
        verdicts[truth.recipe["case"]["withhold"]].append(truth.verdict)
    assert "undecidable" not in verdicts.pop("nothing")
    assert set(verdicts) == {"all_but_progress", "all_but_steps"}
    for found in verdicts.values():
        assert 0.3 <= found.count("undecidable") / len(found) <= 0.7


def test_check_and_audit_pass():
    status, out, err = evalharness("cases", "check", "--suite", "recorded_cpu")
    assert status == 0, out + err
    status, out, err = evalharness("cases", "audit", "--suite", "recorded_cpu")
    assert status == 0, out + err


def test_scores_are_what_they_must_be(tmp_path):
    names = ("oracle", "silent", "shotgun", "constant", "random", "rules")
    specs = [word for name in names for word in ("-d", name)]
    options = ["--suite", "recorded_cpu", "--out", str(tmp_path), "--jobs", "2", "--no-track"]
    status, _, err = evalharness("run", *specs, *options)
    assert status == 0, err
    summaries = {
        name: json.loads((tmp_path / "recorded_cpu" / name / "summary.json").read_text())
        for name in names
    }
    metric = {name: summary["metrics"] for name, summary in summaries.items()}
    value = {name: found["net_benefit_w1"]["value"] for name, found in metric.items()}
    assert metric["oracle"]["recall_cause_and_locus"]["value"] == 1.0
    assert metric["oracle"]["misled_rate"]["value"] == 0.0
    assert value["silent"] == 0.0
    assert value["shotgun"] < 0.0
    assert all(value["rules"] > value[floor] for floor in ("silent", "constant", "random"))
    for summary in summaries.values():
        cases = sum(summary["composition"].values())
        assert (
            sum(
                sum(summary["buckets"][kind].values())
                for kind in ("faulty", "healthy", "undecidable")
            )
            == cases
        )
