"""What datapath-doctor says, in the words of the taxonomy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.schema import Diagnosis, Locus
from harness.diagnosers.third_party.answers import GRADES, Said, answer

# By the rules that support its diagnosis (datapath_doctor/correlation.py, 0.2.1), the most telling
# first, and by the rule alone where it makes no diagnosis.
CAUSES: dict[str, str | None] = {
    "DPD-009": "sync_checkpoint",  # "synchronous checkpoint I/O is blocking training progress"
    "DPD-005": "dataloader_cpu_bound",  # "CPU-bound input preprocessing"
    "DPD-007": "storage_fetch_stall",  # "remote input-storage latency"
    "DPD-006": "random_access_index_mapping",  # "small-file I/O overhead"
    "DPD-002": "storage_fetch_stall",  # "block-storage saturation"
    "DPD-010": "loader_workers",  # "DataLoader worker instability", a symptom by its own word
    "DPD-001": "input_pipeline",  # "Data pipeline is the training bottleneck"
    "DPD-004": "loader_workers",  # "raise prefetch_factor and/or num_workers"
    "DPD-003": None,  # other jobs on the node, cgroup throttling "or a noisy neighbor"
    "DPD-008": "input_pipeline",  # "Shuffle buffer undersized / stalling"
}
SKEW = "data_straggler_rank"  # "the input-path straggler that can become the pacing rank"


def translate(raw: Any) -> Diagnosis:
    """Translate its diagnosis of each rank, or else that the training waits (its rule DPD-001).

    Other rules alone are hints that it makes no diagnosis of, and a diagnosis is what it calls
    its answer (README, "How it works"). Without times of waiting it has nothing to judge.
    """
    said = [one for rank, found in raw["ranks"].items() for one in _said_of(int(rank), found)]
    straggler = raw["straggler"]
    if straggler:
        place = Locus(scope="rank", ranks=(straggler["straggler_rank"],))
        said.append(Said(SKEW, GRADES[straggler["confidence"]], locus=place))
    return answer(said, ranks=len(raw["ranks"]), judged=bool(said) or raw["waits"])


def _said_of(rank: int, found: dict[str, Any]) -> Iterator[Said]:
    diagnosis, findings = found["diagnosis"], found["findings"]
    if diagnosis:
        supporting = set(diagnosis["supporting_rule_ids"])
        cause = next(cause for rule, cause in CAUSES.items() if rule in supporting)
        if cause:
            yield Said(cause, GRADES[diagnosis["confidence"]], rank=rank)
        return
    for finding in findings:
        if finding["rule_id"] == "DPD-001":
            lost = finding["evidence"]["data_wait_fraction"]
            grade = GRADES[finding["severity"]]
            yield Said("input_pipeline", grade, rank=rank, lost_fraction=lost)
