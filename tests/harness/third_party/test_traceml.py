from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cases.case import Case
from cases.schema import JOB
from harness.diagnosers.third_party.traceml import inputs
from harness.diagnosers.third_party.traceml.translate import translate
from tests.harness.third_party.starved_job import write_starved


def _said(*issues: tuple[str, tuple[int, ...]]) -> Any:
    return {
        "primary": {"kind": issues[0][0]},
        "issues": [
            {"kind": kind, "severity": "crit", "ranks": list(ranks), "share_pct": 0.4}
            for kind, ranks in issues
        ],
    }


def test_a_bound_is_the_jobs_and_a_straggler_sits_at_its_rank() -> None:
    answer = translate(_said(("INPUT_BOUND", (3,)), ("H2D_STRAGGLER", (3,))))
    bound, straggler = answer.findings
    assert (bound.cause, bound.locus, bound.confidence) == ("input_pipeline", JOB, 0.8)
    assert bound.lost_fraction == 0.4
    assert straggler.locus is not None and straggler.locus.ranks == (3,)


@pytest.mark.parametrize("kind", ["NO_DATA", "WARMUP", "INCOMPLETE_DATA", "RESIDUAL_HEAVY"])
def test_without_data_or_a_name_it_abstains(kind: str) -> None:
    assert translate(_said((kind, ()))).verdict == "abstain"


@pytest.mark.parametrize("kind", ["BALANCED", "COMPUTE_BOUND"])
def test_balanced_and_busy_jobs_are_healthy(kind: str) -> None:
    assert translate(_said((kind, ()))).verdict == "healthy"


def test_the_traced_step_is_the_step_without_its_wait(tmp_path: Path) -> None:
    given = inputs(Case.open(write_starved(tmp_path / "aaaa")))
    assert given["rows"][0]["ms"]["input_wait"] == 40
    assert given["rows"][0]["ms"]["traced_step_time"] == 60
    assert (given["ranks"], given["strategy"]) == (2, "ddp")
