from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.scenario import Scenario
from injectors.sim.calibration import twin_job
from injectors.sim.job import ONE, Job
from injectors.sim.program import Kind, Program
from injectors.sim.program_checks import problems
from injectors.sim.recording import compiled, perturb
from injectors.sim.run import dynamics_of, seconds, simulate
from injectors.sim.twin import Speeds
from injectors.sim.workloads.cpu.loading import chunks_q16
from injectors.sim.workloads.cpu.operators import Operators, twin_of
from injectors.sim.workloads.cpu.translation import favoured_q16, model_bytes
from injectors.workloads.image_classifier import ImageClassifier

JOBS: dict[str, dict[str, Any]] = {
    "language_model": {"layers": 2, "d_model": 64, "sequence_length": 32},
    "image_classifier": {"channels": 8, "batch_size": 8},
    "pipeline": {},
    "mixture_of_experts": {},
    "recommendation": {},
}
LANGUAGE = JOBS["language_model"]


def job_of(workload: str, ranks: int = 2, steps: int = 12, **more: Any) -> Job:
    return twin_job(scenario_of(workload, ranks, **more), Speeds(), seed=1, steps=steps)


def scenario_of(workload: str, ranks: int = 2, **more: Any) -> Scenario:
    given: dict[str, Any] = {"pinned": True, "parameters": JOBS[workload]} | more
    return Scenario.model_validate(
        {"name": "twin", "workload": workload, "ranks": ranks, "arms": {},
         "cases": [{"arm": "healthy"}], **given}
    )  # fmt: skip


def broken(job: Job, fault: str, **parameters: Any) -> Job:
    table: Mapping[str, Any] = {**FAULTS, **DECOYS}
    perturb(job, table[fault].model_validate(parameters))
    return job


def slowdown(workload: str, fault: str, ranks: int = 2, **more: Any) -> float:
    """How much slower a fault makes a twin; `job` has the scenario's fields, others the fault's."""
    own = more.pop("job", {})
    usual, slow = (job_of(workload, ranks, 40, **own) for _ in range(2))
    broken(slow, fault, **more)
    return seconds(slow, compiled(slow)) / seconds(usual, compiled(usual))


def paths(program: Program, part: str) -> list[str]:
    return [op.path for op in program.ops if part in op.path]


@pytest.mark.parametrize("workload", JOBS)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_recorded_training_job_has_a_twin(workload: str, ranks: int) -> None:
    job = job_of(workload, ranks)
    program = compiled(job)
    assert [*problems(program)] == []
    assert {op.kind for op in program.ops}.isdisjoint({Kind.KERNEL, Kind.WAIT_STREAM})
    run = simulate(job, program, sampled=(0,))
    assert (run.step_ns[1:] > 0).all()
    for mark in ("begin", "data", "optimizer", "checkpoint", "end"):
        assert (run.marks[mark] >= 0).all()


def test_gradients_are_as_many_bytes_as_recorded() -> None:
    """672,768 is what the shipped recordings of this job say of its only bucket."""
    job = job_of("language_model", parameters=LANGUAGE | {"batch_size": 4})
    sizes = [op.label.collective.bytes for op in compiled(job).ops if op.label.collective]
    assert sizes == [672_768]
    assert model_bytes(job) < 672_768  # which leaves norms and biases out


def test_messages_of_a_pipeline_are_as_many_bytes_as_recorded() -> None:
    program = compiled(job_of("pipeline"))
    sizes = {op.label.collective.bytes for op in program.ops if op.kind == Kind.SEND}
    assert sizes == {65_536}
    assert sum(op.kind == Kind.SEND for op in program.ops) == 8  # 4 each way


def test_products_take_flops_over_speed_and_longer_when_small() -> None:
    twin = twin_of(job_of("language_model"))
    made = Operators(twin).product("product", ("aten::mm",), (3000, 1200, 1200))
    flops = 2 * 3000 * 1200 * 1200
    nominal = flops * 10**9 // twin.speeds.flops_per_s
    # 3000 rows count as 3030, 1200 columns and terms as 1212 each.
    assert made.cost.compute_ns == pytest.approx(nominal * 1.01**3, rel=1e-3)
    narrow = Operators(twin, "bfloat16").product("product", ("aten::mm",), (3000, 1200, 1200))
    assert narrow.cost.compute_ns == pytest.approx(made.cost.compute_ns / 2, rel=1e-3)


FAULT: dict[str, dict[str, Any]] = {
    "unfused_kernels": {"layers": 1},
    "attention_backend_fallback": {"layers": 2},
    "foreach_disabled": {},
    "kernel_launch_bound": {"pieces": 2},
    "debug_env_left_on": {},
    "comm_overlap_lost": {"buckets": 2},
}


def test_knobs_change_what_a_step_does() -> None:
    def count(part: str, fault: str, **parameters: Any) -> tuple[int, int]:
        parameters = {"d_model": 64, "attention": "sdpa", "compiled": True} | parameters
        healthy = job_of("language_model", parameters=parameters)
        job = broken(job_of("language_model", parameters=parameters), fault, **FAULT[fault])
        return len(paths(compiled(healthy), part)), len(paths(compiled(job), part))

    assert count("/gelu/chain", "unfused_kernels") == (0, 9 + 15)
    assert count("/softmax/", "attention_backend_fallback")[0] == 0
    assert count("/softmax/", "attention_backend_fallback")[1] > 0
    assert count("/adamw.", "foreach_disabled")[0] == 0
    assert count("/adamw.", "foreach_disabled")[1] > 100
    assert count("/qkv/gemm", "kernel_launch_bound") == (2, 4)
    assert count("/isnan", "debug_env_left_on")[0] == 0
    assert count("/isnan", "debug_env_left_on")[1] > 20
    assert count("/bucket0.wait", "comm_overlap_lost") == (0, 1)


def test_checks_that_come_every_few_steps_cost_nothing_in_others() -> None:
    job = broken(job_of("language_model", ranks=1), "debug_env_left_on", every=4)
    run = simulate(job, compiled(job), sampled=(0,))
    steps = run.step_ns[4:12, 0]
    slow = steps > 2 * sorted(steps)[0]
    assert [int(i) for i in slow.nonzero()[0]] == [3, 7]


@pytest.mark.parametrize(
    ("workload", "fault", "ranks", "parameters", "low", "high"),
    [
        ("language_model", "slow_link", 2, {"rank": 1, "rate_mbit_per_s": 200}, 2.5, 6),
        ("language_model", "cpu_contention_colocated", 1, {"processes": 1, "core": 0}, 1.6, 2.5),
        ("language_model", "cgroup_cpu_throttle", 1, {"cores": 0.5}, 1.7, 2.4),
        ("language_model", "process_suspended", 1, {"stopped_fraction": 0.5}, 1.8, 2.2),
        ("language_model", "memory_bandwidth_contention", 1, {"core": 1}, 1.1, 1.4),
        ("image_classifier", "storage_fetch_stall", 1, {"megabytes_per_s": 3}, 3, 6),
        ("image_classifier", "dataloader_cpu_bound", 1, {"decode_passes": 40}, 2, 4),
        ("image_classifier", "data_straggler_rank", 2, {"latency_ms": 5}, 1.3, 4),
        ("mixture_of_experts", "moe_expert_imbalance", 2, {"bias_logits": 3}, 1.1, 1.9),
        ("recommendation", "embedding_shard_imbalance", 2, {"share": 1.0}, 1.05, 1.7),
    ],
)
def test_faults_act_as_they_do_on_the_real_job(
    workload: str, fault: str, ranks: int, parameters: dict[str, Any], low: float, high: float
) -> None:
    assert low < slowdown(workload, fault, ranks, **parameters) < high


def test_a_moved_layer_makes_the_last_stage_slow() -> None:
    assert 1.05 < slowdown("pipeline", "pp_stage_imbalance", layers=2) < 1.5


def test_decoys_cost_nothing() -> None:
    assert slowdown("language_model", "low_priority_competitor", 1, processes=1) < 1.05
    assert slowdown("image_classifier", "hidden_slow_read", 1, megabytes_per_s=60) < 1.05


def test_a_competitor_on_another_core_leaves_a_pinned_rank_alone() -> None:
    assert slowdown("language_model", "cpu_contention_colocated", 1, processes=1, core=1) < 1.02


def test_lengths_go_round_and_meet_in_all_ranks_unless_shifted() -> None:
    parameters = LANGUAGE | {"max_length": 128, "mixed_lengths": True, "batch_size": 4}
    job = job_of("language_model", parameters=parameters)
    program = compiled(job)
    row = program.work_rows.index("lengths.attention")
    for shift, apart in ((0, False), (1, True)):
        twin_of(job).knobs["length_shift"] = shift
        dynamics = dynamics_of(job, program)
        work = dynamics.conditions(0).work_q16[row]
        assert (abs(work[0] - work[1]) > ONE // 4) == apart


def test_graphs_beyond_the_limit_run_op_by_op() -> None:
    parameters = LANGUAGE | {
        "max_length": 128, "mixed_lengths": True, "batch_size": 4, "compiled": True
    }  # fmt: skip
    job = job_of("language_model", ranks=1, parameters=parameters, profiled_steps=6)
    program = compiled(broken(job, "recompile_limit_eager_fallback", graphs=1))
    job.profiled_steps = 6
    kept = simulate(job, program, sampled=(0,)).kept
    chain = [i for i, op in enumerate(program.ops) if "/gelu/chain" in op.path]
    ran = {step: bool((times.start[chain] >= 0).any()) for step, times in kept.items()}
    assert ran == {6: False, 7: True, 8: True, 9: False, 10: True, 11: True}


@pytest.mark.parametrize(("bias", "share"), [(0.0, 0.5), (0.6, 0.813), (3.0, 1.0)])
def test_share_of_tokens_that_a_biased_router_sends(bias: float, share: float) -> None:
    """0.813 is the normal distribution's value at 0.6 / 0.674."""
    assert favoured_q16(round(bias * ONE), ranks=2) == pytest.approx(share * ONE, abs=0.005 * ONE)


@pytest.mark.parametrize(("shuffled", "chunks"), [(0.0, 0.5), (0.5, 6.125), (1.0, 8.0)])
def test_shuffled_images_take_a_chunk_each(shuffled: float, chunks: float) -> None:
    """Half shuffled: a quarter of 8 follow on another, 8 * 0.75 + 0.25 * 0.5."""
    model = ImageClassifier(batch_size=8, chunk_images=32, workers=2, layout="packed")
    assert chunks_q16(model, round(shuffled * ONE)) == pytest.approx(chunks * ONE, rel=1e-3)
