from __future__ import annotations

import pytest

from harness.diagnosers.third_party.torch_tb_profiler.translate import translate

LOADER = (
    "This run has high time cost on input data loading. 41.5% of the step time is in DataLoader."
    " You could try to set num_workers on DataLoader's construction"
)
COMMUNICATION = (
    "This run has high time cost on communication. 12.0% of the step time is in communication. You"
    " could try <a>Gradient Compression</a> or <a>Gradient Accumulation</a> or increase the batch"
)
PRECISION = (
    "Kernels with 63% time are launched by Tensor Cores eligible operators. You could enable"
    " <a>Automatic Mixed Precision</a> to speedup by using FP16."
)
IDLE = "GPU 0 has low utilization. You could try to increase batch size to improve."


def test_recommendations_are_known_by_their_words() -> None:
    answer = translate({"0": [LOADER, COMMUNICATION, PRECISION, IDLE]})
    said = [(finding.cause, finding.lost_fraction) for finding in answer.findings]
    assert said == [
        ("input_pipeline", 0.415),
        ("communication_schedule", 0.12),
        ("precision_fallback", None),
    ]


def test_idle_without_a_reason_is_not_healthy() -> None:
    assert translate({"0": [IDLE]}).verdict == "abstain"
    assert translate({"0": [], "1": []}).verdict == "healthy"
    with pytest.raises(StopIteration):
        translate({"0": ["Buy a faster GPU."]})
