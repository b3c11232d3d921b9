from __future__ import annotations

from pathlib import Path
from typing import Any

from cases.case import Case
from harness.diagnosers.third_party.nvrx import inputs
from harness.diagnosers.third_party.nvrx.driver import kernel_times_us
from harness.diagnosers.third_party.nvrx.translate import translate
from tests.harness.third_party.starved_job import NCCL, write_starved


def _said(gpus: list[int], sections: dict[str, list[int]], *scores: float | None) -> Any:
    named = {str(rank): score for rank, score in enumerate(scores)}
    return {"gpus": gpus, "sections": sections, "gpu_scores": named}


def test_slow_gpus_are_one_finding_at_their_ranks() -> None:
    (finding,) = translate(_said([1, 2], {}, 1.0, 0.6, 0.7)).findings
    assert finding.cause == "gpu_hardware"
    assert finding.locus is not None and finding.locus.ranks == (1, 2)


def test_slow_sections_have_no_name() -> None:
    assert translate(_said([], {"forward": [1]}, 1.0, 1.0)).verdict == "abstain"
    assert translate(_said([], {}, 1.0, 1.0)).verdict == "healthy"


def test_one_rank_has_no_other_to_be_compared_with() -> None:
    assert translate(_said([], {}, 1.0)).verdict == "abstain"
    assert translate(_said([], {}, None, None)).verdict == "abstain"


def test_times_are_of_all_steps_and_kernels(tmp_path: Path) -> None:
    given = inputs(Case.open(write_starved(tmp_path / "aaaa")))
    assert given["sections"]["0"]["forward"] == [0.02] * 24
    assert kernel_times_us(given["traces"]["1"]) == {"gemm": [5e4] * 3, NCCL: [1e4] * 3}
