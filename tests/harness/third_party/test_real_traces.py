"""Real GPU traces, which are not shipped: tools say the same by hand and through the harness.

EVALHARNESS_REAL_TRACES names their folder. By hand means the call that a tool's documentation
shows, on the file as it was recorded; through the harness means imported, scrubbed and sandboxed.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cases.importing import ImportOptions, import_case
from harness.diagnosers.third_party.fournex.translate import translate as fournex
from harness.diagnosers.third_party.gpu_idle.translate import translate as gpu_idle
from harness.diagnosers.third_party.hta.translate import translate as hta
from harness.diagnosers.third_party.pytscope.translate import translate as pytscope
from harness.diagnosers.third_party.torch_tb_profiler.translate import translate as plugin
from harness.environments import Environment, environment_of
from harness.specs import parse_spec

VARIABLE = "EVALHARNESS_REAL_TRACES"
FOLDER = Path(os.environ.get(VARIABLE, "/nonexistent"))
TRACES = (
    "hta_nccl_args_a100_rank0of2",
    "hta_recsys_rank0of128",
    "param_resnet_2080ti",
    "tracelens_ddp_mi300x_rank0of8",
    "tracelens_qwen0.5b_h100",
)

PYTSCOPE = """
import json, sys
from dataclasses import asdict
from pytscope.analyzers.trace import analyze_trace_file
from pytscope.diagnosis import DiagnosisContext, run_diagnosis
found = run_diagnosis(DiagnosisContext(trace=analyze_trace_file(sys.argv[1])))
print(json.dumps({"findings": [asdict(finding) for finding in found]}))
"""
PLUGIN = """
import json, sys, tempfile
from torch_tb_profiler.profiler.data import RunProfileData
found = RunProfileData.parse("worker", "1", sys.argv[1], tempfile.mkdtemp())
print(json.dumps({"0": found.recommendations}))
"""
HTA = """
import json, sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
print(json.dumps({
    "temporal": analysis.get_temporal_breakdown(visualize=False).to_dict("records"),
    "overlap": analysis.get_comm_comp_overlap(visualize=False).to_dict("records"),
    "idle": analysis.get_idle_time_breakdown([0], visualize=False)[0].to_dict("records"),
}, default=float))
"""
IDLE = "import sys, analyzer; sys.exit(analyzer._cli())"
FRX = "import sys; from fournex.cli import main; sys.exit(main(sys.argv[1:]))"


def _printed(name: str, script: str, *arguments: object) -> tuple[str, str]:
    """Standard output and the last line of complaints of a script in a tool's environment."""
    python = environment_of(name).python
    command = [str(python), "-W", "ignore", "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.stdout, (done.stderr.strip().splitlines() or [""])[-1]


def _gpu_idle(packed: Path, plain: Path) -> Any:
    out, error = _printed("gpu-idle", IDLE, "--json", plain)
    return gpu_idle({"0": json.loads(out) if out else {"refused": error}})


def _fournex(packed: Path, plain: Path) -> Any:
    (plain.parent / "run" / "profiler").mkdir(parents=True)
    os.link(plain, plain.parent / "run" / "profiler" / "profiler_trace.json")
    out, error = _printed("fournex", FRX, "analyze", plain.parent / "run", "--json")
    return fournex({"0": json.loads(out)["result"] if out else {"refused": error}})


def _hta(packed: Path, plain: Path) -> Any:
    out, error = _printed("hta", HTA, packed)
    return hta(json.loads(out.splitlines()[-1])) if not error.startswith("AssertionError") else None


BY_HAND: dict[str, Callable[[Path, Path], Any]] = {
    "gpu-idle": _gpu_idle,
    "fournex": _fournex,
    "pytscope": lambda packed, plain: pytscope(
        json.loads(_printed("pytscope", PYTSCOPE, packed)[0])
    ),
    "torch-tb-profiler": lambda packed, plain: plugin(
        json.loads(_printed("torch-tb-profiler", PLUGIN, packed)[0].splitlines()[-1])
    ),
    "hta": _hta,
}


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} is not set")
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand_and_through_the_harness(
    name: str,
    trace: str,
    tool: Callable[[str], Environment],
    asked: Callable[..., Any],
    tmp_path: Path,
) -> None:
    if not environment_of(name).ready:
        pytest.skip(f"not installed (evalharness diagnosers install {name})")
    packed, plain = FOLDER / f"{trace}.json.gz", tmp_path / "plain.json"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    expected = BY_HAND[name](packed, plain)
    info = import_case(packed, tmp_path / "suite", ImportOptions())
    (run,) = asked(parse_spec(name).task, [tmp_path / "suite" / info.id], timeout_s=300.0)
    if expected is None:  # it crashes by hand as well
        assert run.outcome == "error"
        return
    assert run.outcome == "ok", f"{run.error}\n{run.output}"
    answer = json.loads(run.answer)
    assert answer["verdict"] == expected.verdict
    found = [(f["cause"], f["confidence"]) for f in answer["findings"]]
    wanted = [(f.cause, f.confidence) for f in expected.findings]
    assert [cause for cause, _ in found] == [cause for cause, _ in wanted]
    assert [own for _, own in found] == pytest.approx([own for _, own in wanted], rel=1e-3)
