from __future__ import annotations

from typing import Any

from harness.diagnosers.third_party.hta.translate import translate


def _said(idle: float, exposed: float, overlap: float, waits: dict[str, float]) -> Any:
    return {
        "temporal": [{"rank": 0, "idle_time_pctg": idle, "non_compute_time_pctg": exposed}],
        "overlap": [{"rank": 0, "comp_comm_overlap_pctg": overlap}],
        "idle": [
            {"rank": 0, "idle_category": kind, "idle_time": time} for kind, time in waits.items()
        ],
    }


def test_idle_time_is_called_by_its_larger_part() -> None:
    waits = {"host_wait": 60.0, "kernel_wait": 30.0, "other": 10.0}
    (finding,) = translate(_said(25, 5, 0, waits)).findings
    assert (finding.cause, finding.lost_fraction) == ("host_overhead", 0.25)
    waits |= {"kernel_wait": 70.0}
    assert translate(_said(25, 5, 0, waits)).findings[0].cause == "kernel_launch_bound"


def test_idle_time_of_unknown_cause_is_not_healthy() -> None:
    assert translate(_said(25, 5, 0, {"other": 1.0})).verdict == "abstain"
    assert translate(_said(19, 5, 0, {"other": 1.0})).verdict == "healthy"


def test_exposed_communication_takes_both_limits() -> None:
    said = [finding.cause for finding in translate(_said(5, 30, 40, {})).findings]
    assert said == ["communication_schedule"]
    assert translate(_said(5, 30, 60, {})).verdict == "healthy"
    assert translate(_said(5, 15, 40, {})).verdict == "healthy"


def test_without_traces_of_kernels_it_cannot_tell() -> None:
    assert translate({"temporal": [], "overlap": [], "idle": []}).verdict == "abstain"
