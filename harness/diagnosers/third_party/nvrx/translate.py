"""What nvidia-resiliency-ext says, in the words of the taxonomy."""

from __future__ import annotations

from typing import Any

from cases.schema import Diagnosis, Locus
from harness.diagnosers.third_party.answers import UNGRADED, Said, answer

# `straggler_gpus_relative`: "ranks with straggler GPUs", whose kernels take longer than those of
# the fastest rank (docstring of Report.identify_stragglers, 0.4.1).
GPU = "gpu_hardware"


def translate(raw: Any) -> Diagnosis:
    """Translate its stragglers.

    Slow sections of a rank have no name in the taxonomy: anything can make them slow. They make
    no answer healthy. One rank's kernels alone have nothing to be compared with.
    """
    scored = [score for score in raw["gpu_scores"].values() if score is not None]
    said = (
        [Said(GPU, UNGRADED, locus=Locus(scope="rank", ranks=tuple(raw["gpus"])))]
        if raw["gpus"]
        else []
    )
    return answer(said, judged=bool(said) or (len(scored) > 1 and not raw["sections"]))
