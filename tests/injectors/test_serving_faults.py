"""Each serving fault is shown by its own witness and by no other one's."""

import time
from types import SimpleNamespace

import pandas as pd
import pytest

pytest.importorskip("torch", reason="serving needs torch: pip install 'evalharness[record]'")

import torch

from cases.bundle import RunData, write_case
from cases.case import Case
from cases.schema import (
    CaseInfo,
    Environment,
    Provenance,
    RankPlace,
    Signals,
    Topology,
    Workload,
)
from cases.tables import to_arrow
from injectors.faults import FAULTS
from injectors.recorder.knobs import Knobs
from injectors.recorder.observers import RuntimeLog
from injectors.workloads import WORKLOADS
from injectors.workloads.base import Context

STEPS = 12
# Two engines, each with room for the prefixes of its own tenants but not of all.
PARAMETERS = {
    "engines": 2,
    "max_num_seqs": 6,
    "max_concurrency": 20,
    "kv_blocks": 88,
    "tenants": 16,
    "shared_share": 0.8,
    "document_share": 0.0,
    "document_tokens": 64,
    "compile_sampling": "eager",
}
ARMS = {
    "healthy": None,
    "decode_batch_kv_limited": {"kv_blocks": 30},
    "engine_cpu_bound": {"logprobs": 24},
    "jit_during_serving": {"share": 0.5},
    "kv_cache_disabled": {"share": 0.3},
    "kv_cache_preemption": {"kv_blocks": 24},
    "prefill_decode_interference": {"share": 1.0},
    "prefix_cache_routing_miss": {"share": 1.0},
    "spec_decode_overhead": {"draft_tokens": 4},
    "structured_output_cpu_bound": {"share": 1.0},
    "unbatched_decoding": {"max_num_seqs": 1},
}


def recorded(program, settle):
    for _ in range(settle):
        program.step()
    start_ns = time.monotonic_ns()
    program.tables(start_ns, 0)
    log = RuntimeLog(rank=0)
    log.start(start_ns)
    for _ in range(STEPS):
        program.step()
    rows = {**program.tables(start_ns, STEPS), "runtime": log.stop()}
    return RunData(
        {name: to_arrow(name, pd.DataFrame(table)).to_pandas() for name, table in rows.items()}, {}
    )


def info(name):
    return CaseInfo(
        id=name,
        title="Inference server",
        kind="inference",
        shape="snapshot",
        question="regression",
        workload=Workload(name="inference_server", parameters={}),
        topology=Topology(ranks=(RankPlace(rank=0, host="host0"),), parallelism={"data": 1}),
        environment=Environment(versions={}, config={}),
        signals=Signals(present=("requests", "engine", "runtime"), absent=()),
        provenance=Provenance(backend="torch_cpu"),
    )


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """One running server, switched from one condition to the next, as in a recording."""
    folder = tmp_path_factory.mktemp("serving")
    workload = WORKLOADS["inference_server"].model_validate(PARAMETERS)
    run = SimpleNamespace(knobs=Knobs())
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        context = Context(0, 1, 0, torch.device("cpu"), run.knobs, folder)
        program = workload.build(context)
        reference = recorded(program, workload.settle_steps)
        found = {}
        for number, (name, parameters) in enumerate(ARMS.items()):
            if parameters is None:
                run_data = recorded(program, workload.settle_steps)
            else:
                with FAULTS[name].model_validate(parameters).inject(run):
                    run_data = recorded(program, workload.settle_steps)
                for _ in range(workload.settle_steps):
                    program.step()
            target = folder / f"case{number}"
            write_case(target, info(target.name), run_data.tables, {}, reference)
            found[name] = Case.open(target)
    finally:
        torch.set_num_threads(before)
    return found


@pytest.mark.parametrize("cause", [name for name in ARMS if name != "healthy"])
def test_witness_is_true_on_its_own_case_only(cases, cause):
    from cases.witness import holds

    sql, _ = FAULTS[cause].model_validate(ARMS[cause]).witness()
    assert [name for name, case in cases.items() if holds(case, sql)] == [cause]
