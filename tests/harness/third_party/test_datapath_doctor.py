from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cases.case import Case
from harness.diagnosers.third_party.datapath_doctor.inputs import _Workers, inputs
from harness.diagnosers.third_party.datapath_doctor.translate import translate
from tests.harness.third_party.starved_job import write_starved


def _rank(*rules: str, confidence: str = "high", findings: tuple[str, ...] = ()) -> Any:
    diagnosis = {"supporting_rule_ids": list(rules), "confidence": confidence} if rules else None
    found = [
        {"rule_id": rule, "severity": "warning", "evidence": {"data_wait_fraction": 0.2}}
        for rule in findings
    ]
    return {"diagnosis": diagnosis, "findings": found}


def _said(*ranks: Any, straggler: Any = None, waits: bool = True) -> Any:
    named = {str(rank): found for rank, found in enumerate(ranks)}
    return {"ranks": named, "straggler": straggler, "waits": waits}


def test_a_diagnosis_is_called_by_the_most_telling_of_its_rules() -> None:
    answer = translate(_said(_rank("DPD-001", "DPD-005"), _rank("DPD-001", "DPD-007")))
    said = [(f.cause, f.locus and f.locus.ranks) for f in answer.findings]
    assert said == [("dataloader_cpu_bound", (0,)), ("storage_fetch_stall", (1,))]


def test_waiting_alone_is_input_bound_and_other_rules_alone_are_hints() -> None:
    (finding,) = translate(_said(_rank(findings=("DPD-001", "DPD-004")))).findings
    assert (finding.cause, finding.lost_fraction) == ("input_pipeline", 0.2)
    assert translate(_said(_rank(findings=("DPD-004",)))).verdict == "healthy"


def test_the_slowest_rank_is_named() -> None:
    skew = {"straggler_rank": 1, "confidence": "medium"}
    (finding,) = translate(_said(_rank(), _rank(), straggler=skew)).findings
    assert finding.cause == "data_straggler_rank"
    assert finding.locus is not None and finding.locus.ranks == (1,)


def test_without_waits_it_cannot_tell() -> None:
    assert translate(_said(_rank(), waits=False)).verdict == "abstain"


def test_samples_have_what_was_recorded_and_nothing_else(tmp_path: Path) -> None:
    sample = inputs(Case.open(write_starved(tmp_path / "aaaa")))["samples"][5]
    assert sample["data_wait_s"] == 0.04
    assert sample["compute_time_s"] == pytest.approx(0.06)
    assert (sample["queue_depth"], sample["queue_capacity"]) == (0, 8)
    assert sample["disk_read_bytes_per_s"] == 1e7
    assert not {"disk_util_pct", "checkpoint_write_s", "is_network_fs"} & set(sample)


def test_workers_are_replaced_when_one_goes_and_one_comes() -> None:
    def row(process: int, time_ns: int) -> dict[str, Any]:
        worker = {"role": "loader_worker", "rank": 0, "process": process}
        return {**worker, "time_ns": time_ns, "cpu_ns": 50}

    workers = _Workers([row(1, 100), row(2, 100), row(1, 200), row(3, 200)])
    assert workers.at(0, 99) == {}
    assert workers.at(0, 150) == {"worker_cpu_pct": 50.0, "worker_restarts": 0}
    assert workers.at(0, 999) == {"worker_cpu_pct": 50.0, "worker_restarts": 1}
    assert workers.at(1, 999) == {}
