"""The decision list on shipped cases: each of its promises can be broken by one of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cases.bundle import PACKAGED, Suite
from cases.case import Case
from cases.taxonomy import Taxonomy
from harness.degrade.copying import read_copy, write_copy
from harness.diagnosers.rules import diagnose
from harness.diagnosers.rules.audits import AUDITS
from harness.diagnosers.rules.missing import candidates, missing_signals
from harness.diagnosers.rules.order import ON_CORES, SERVERS, TRAINING
from harness.diagnosers.rules.queries import number, query_of
from harness.judge import load_labels
from scorers import Label

RECORDED = PACKAGED / "recorded_cpu"
LISTS = {"training": TRAINING, "cores": ON_CORES, "servers": SERVERS, "audits": AUDITS}


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite.open(RECORDED)


@pytest.fixture(scope="module")
def train() -> list[Label]:
    return [label for label in load_labels(RECORDED) if label.split == "train"]


def first(labels: list[Label], cause: str) -> Label:
    alone = [item for item in labels if [fault.cause for fault in item.faults] == [cause]]
    return next(item for item in alone if item.verdict == "faulty")


@pytest.mark.parametrize("name", LISTS)
def test_rules_name_causes_and_cite_what_has_a_query(name: str) -> None:
    causes = set(Taxonomy.load().causes)
    for rule in LISTS[name]:
        assert {rule.cause, *(cause for cause, _ in rule.rivals)} <= causes
        assert 0.5 < rule.sure < 1
        assert rule.cause not in dict(rule.rivals)


def test_every_training_rule_has_evidence() -> None:
    without = [
        r.cause for r in (*TRAINING, *SERVERS) if not any(query_of(c, True) for c in r.cites)
    ]
    assert without == []


@pytest.mark.parametrize(
    "cause", ["storage_fetch_stall", "dataloader_cpu_bound", "python_gc_pause", "slow_link"]
)
def test_known_causes_are_found_with_evidence_that_holds(
    suite: Suite, train: list[Label], cause: str
) -> None:
    case = suite.case(first(train, cause).case_id)
    answer = diagnose(case)
    (finding,) = answer.findings
    assert finding.cause == cause
    assert finding.ruled_out and finding.locus is not None
    assert finding.lost_fraction is not None and 0 < finding.lost_fraction < 1
    assert len(finding.evidence) >= 2
    for evidence in finding.evidence:
        assert number(case, evidence.sql) == pytest.approx(evidence.value)


def test_healthy_recordings_raise_no_alarm(suite: Suite, train: list[Label]) -> None:
    healthy = [
        item.case_id
        for item in train
        if item.verdict == "healthy" and item.question == "regression"
    ]
    assert {diagnose(suite.case(case)).verdict for case in healthy[:8]} == {"healthy"}


def test_a_case_whose_steps_nobody_timed_is_not_called_healthy(
    suite: Suite, train: list[Label], tmp_path: Path
) -> None:
    copy = read_copy(suite, first(train, "storage_fetch_stall").case_id)
    assert copy.reference is not None
    runs = copy.run.without(["steps"]), copy.reference.without(["steps"])
    write_copy(copy.with_runs(*runs), tmp_path / "case")
    said = diagnose(Case.open(tmp_path / "case"))
    assert (said.verdict, said.missing_signals) == ("abstain", ("steps.duration_ns",))


def test_undecidable_case_is_left_undecided_and_says_what_is_missing(
    suite: Suite, train: list[Label]
) -> None:
    label = next(item for item in train if item.verdict == "undecidable")
    answer = diagnose(suite.case(label.case_id))
    assert answer.verdict == "abstain"
    named = {signal.split(".")[0] for signal in answer.missing_signals}
    true = {signal.split(".")[0] for signal in label.missing_signals}
    assert len(named & true) >= len(named | true) / 2


def test_whole_case_lacks_nothing(suite: Suite, train: list[Label]) -> None:
    assert missing_signals(suite.case(first(train, "storage_fetch_stall").case_id)) == ()


def test_candidates_follow_what_is_missing() -> None:
    assert "power_cap" in candidates(("gpu.power_w", "gpu.sm_clock_mhz"))
    assert "kv_cache_preemption" in candidates(("engine", "trace_events"))
    assert "slow_link" in candidates(("collectives.created_ns",))


def test_query_without_a_number_is_no_evidence(suite: Suite, train: list[Label]) -> None:
    case = suite.case(first(train, "storage_fetch_stall").case_id)
    assert math.isnan(number(case, "SELECT avg(power_w) FROM gpu"))


def test_query_of_a_fact_is_compared_by_its_unit() -> None:
    ratio, level = query_of("clock.min", True), query_of("hot.max", True)
    assert ratio is not None and "min(here.v / there.v)" in ratio
    assert level is not None and "max(here.v - there.v)" in level
    alone = query_of("hot.max", False)
    assert alone is not None and "reference" not in alone
    assert query_of("duration.max", True) is None
