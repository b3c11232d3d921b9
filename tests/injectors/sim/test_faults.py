"""Every simulated fault in a small job: what it edits, what it costs, that its witness holds."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases.schema import Topology
from injectors.build import Places
from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.label_rule import FAULTY_ABOVE, HEALTHY_BELOW
from injectors.scenario import TWIN, CasePlan, Scenario
from injectors.sim.backend import Group
from injectors.sim.job import ONE, Job
from injectors.sim.program import Kind, Stream
from injectors.sim.public import topology
from injectors.sim.recording import compiled, measure, set_up
from injectors.sim.run import Run, seconds, simulate
from injectors.sim.tables.steps import phases
from injectors.write_group import write_group

# Of a job: what it is, and what breaks it, by cause.
Broken = tuple[dict[str, Any], dict[str, dict[str, Any]]]

TRAINING: Broken = (
    {
        "workload": "ddp_transformer",
        "machine": "h100",
        "ranks": 8,
        "steps": 40,
        "parameters": {
            "hidden": 2048,
            "heads": 16,
            "layers": 4,
            "micro_batch": 4,
            "sequence": 2048,
        },
    },
    {
        "python_gc_pause": {"rank": 3, "records_per_micro_batch": 60_000},
        "host_device_sync": {"gradients": 600},
        "kernel_launch_bound": {"pieces": 4},
        "foreach_disabled": {},
        "blocking_metric_io": {"response_s": 0.06},
        "rank_extra_host_work": {"rank": 2, "extra_ms": 20},
        "debug_env_left_on": {},
        "excessive_small_collectives": {"collectives": 600},
        "precision_fallback": {"layers": 1},
        "attention_backend_fallback": {"layers": 4},
        "padding_waste": {"padded_tokens": 3072},
        "idle_device_misconfig": {"rank": 5, "onto": 4},
        "sync_checkpoint": {"every": 6, "megabytes": 300},
        "async_checkpoint_interference": {"every": 8, "megabytes": 500, "lock_share": 0.88},
        "recompilation_churn": {"every": 6, "compile_s": 0.1},
        "recompile_limit_eager_fallback": {"graphs": 1},
        "kernel_regression": {"layers": 1, "family": "gemm", "efficiency": 0.6},
        "unfused_kernels": {"layers": 4},
        "allocator_retry_fragmentation": {"headroom": 0.05},
        "vram_sysmem_spill": {"share": 0.03},
        "nccl_p2p_disabled": {},
        "nccl_sm_contention": {"blocks": 64},
        "nccl_tuning_regression": {"protocol": "Simple", "channels": 2},
        "process_suspended": {"rank": 6, "stopped_fraction": 0.4, "period_s": 0.3},
        "monitoring_interference": {"agents": 4, "host": 0},
        "thermal_throttle": {"rank": 1, "inlet_c": 45, "resistance_mc_per_w": 130},
        "power_cap": {"rank": 1, "limit_w": 300},
        "gpu_silicon_variability": {"rank": 7, "speed": 0.75},
        "nvlink_degraded": {"rank": 0, "bandwidth_left": 0},
        "gpu_noisy_neighbor": {"rank": 2, "processes": 2},
    },
)
TWO_HOSTS: Broken = (
    {
        "workload": "ddp_transformer",
        "machine": "a100",
        "ranks": 16,
        "steps": 40,
        "parameters": {
            "hidden": 1024,
            "heads": 16,
            "layers": 6,
            "micro_batch": 2,
            "sequence": 1024,
            "accumulation": 2,
        },
    },
    {
        "grad_sync_every_microbatch": {},
        "comm_overlap_lost": {"buckets": 1},
        "nccl_transport_fallback": {},
        "cpu_contention_colocated": {"processes": 900, "host": 1},
        "cgroup_cpu_throttle": {"cores": 0.3, "rank": 9},
        "network_congestion": {"source": None, "flows": 6},
        "slow_link": {"rank": 2, "peer": 11, "rate_mbit_per_s": 10_000},
        "high_latency_link": {"rank": 2, "peer": 11, "latency_us": 2000},
        "pcie_downgrade": {"rank": 4, "generation": 1, "width": 16},
    },
)
SMALL_GRADIENTS: Broken = (
    {
        "workload": "ddp_transformer",
        "machine": "h100",
        "ranks": 8,
        "steps": 120,
        "parameters": {
            "hidden": 512,
            "heads": 8,
            "layers": 12,
            "micro_batch": 2,
            "sequence": 512,
            "compiled": False,
        },
    },
    {
        "undersized_buckets": {"bucket_mb": 0.1},
        "cpu_low_frequency": {"host": 0, "speed": 0.4},
        "rank_affinity_overlap": {"ranks": (2, 3)},
    },
)
SOCKETS: Broken = (
    {
        "workload": "ddp_transformer",
        "machine": "a100",
        "ranks": 16,
        "parameters": {
            "hidden": 1024,
            "heads": 16,
            "layers": 4,
            "micro_batch": 8,
            "sequence": 1024,
            "transport": "socket",
        },
    },
    {"lossy_link": {"rank": 0, "loss_fraction": 0.05}},
)
THREE_HOSTS: Broken = (
    {
        "workload": "ddp_transformer",
        "machine": "h100",
        "ranks": 24,
        "parameters": {
            "hidden": 2048,
            "heads": 16,
            "layers": 4,
            "micro_batch": 2,
            "sequence": 2048,
            "transport": "roce",
        },
    },
    {
        "roce_flow_control_loss": {"bandwidth_left": 0.1},
        "nic_degraded": {"host": 1, "rate_mbit_per_s": 50_000},
    },
)
LONG: Broken = (
    {
        "workload": "fsdp_transformer",
        "machine": "h100",
        "ranks": 4,
        "parameters": {
            "hidden": 2048,
            "heads": 16,
            "layers": 3,
            "micro_batch": 1,
            "sequence": 16384,
        },
    },
    {"sequence_length_imbalance": {"shift": 6}},
)
PIPELINE: Broken = (
    {
        "workload": "pipeline_transformer",
        "machine": "h100",
        "ranks": 8,
        "parameters": {"hidden": 2048, "heads": 16, "layers": 8, "micro_batch": 2, "pipeline": 4},
    },
    {"pp_stage_imbalance": {"layers": 2}},
)
EXPERTS: Broken = (
    {
        "workload": "moe_transformer",
        "machine": "h100",
        "ranks": 8,
        "steps": 30,
        "parameters": {"hidden": 2048, "heads": 16, "layers": 4, "micro_batch": 4},
    },
    {"moe_expert_imbalance": {"bias_logits": 2.0, "rank": 3}},
)
IMAGES: Broken = (
    {
        "workload": "vision",
        "machine": "a100",
        "ranks": 4,
        "steps": 64,
        "parameters": {"micro_batch": 64, "workers": 8},
    },
    {
        "dataloader_cpu_bound": {"decode_passes": 6},
        "storage_fetch_stall": {"megabytes_per_s": 6},
        "data_straggler_rank": {"latency_ms": 700},
        "random_access_index_mapping": {"share": 1.0},
        "worker_affinity_pinned": {},
        "worker_respawn_each_epoch": {},
        "slow_loader_worker": {"rank": 1, "latency_ms": 450},
        "too_few_loader_workers": {"workers": 2},
        "pageable_h2d_copy": {},
        "autotune_per_shape": {"tries": 3},
        "memory_bandwidth_contention": {"processes": 24, "host": 0},
        "thread_oversubscription": {"threads": 400},
    },
)
CLICKS: Broken = (
    {
        "workload": "recommender",
        "machine": "h100",
        "ranks": 4,
        "steps": 100,
        "parameters": {"micro_batch": 4096},
    },
    {
        "embedding_shard_imbalance": {"share": 0.4, "rank": 1},
        "numa_misplacement": {"ranks": (0, 1, 2)},
    },
)
PREFIXES: Broken = (
    {
        "workload": "llm_serving",
        "machine": "a100",
        "ranks": 4,
        "steps": 20,
        "parameters": {
            "engines": 4,
            "prompt_tokens": 1024,
            "prefix_share": 0.85,
            "generation_tokens": 64,
            "tenants": 96,
            "max_concurrency": 96,
            "document_share": 0,
        },
    },
    {"prefix_cache_routing_miss": {"share": 1.0}},
)
SERVER: Broken = (
    {
        "workload": "llm_serving",
        "machine": "h100",
        "ranks": 2,
        "steps": 20,
        "parameters": {
            "engines": 2,
            "layers": 12,
            "prompt_tokens": 384,
            "generation_tokens": 160,
            "max_concurrency": 64,
            "kv_blocks": 2000,
            "document_share": 0,
        },
    },
    {
        "kv_cache_preemption": {"kv_blocks": 300},
        "kv_cache_disabled": {"share": 0.2},
        "decode_batch_kv_limited": {"kv_blocks": 300},
        "prefill_decode_interference": {"share": 1.0},
        "unbatched_decoding": {"max_num_seqs": 4},
        "spec_decode_overhead": {"draft_tokens": 5},
        "structured_output_cpu_bound": {"share": 0.5},
        "engine_cpu_bound": {"logprobs": 20},
        "jit_during_serving": {"share": 0.5},
    },
)
JOBS: dict[str, Broken] = {
    "training": TRAINING,
    "two-hosts": TWO_HOSTS,
    "small-gradients": SMALL_GRADIENTS,
    "sockets": SOCKETS,
    "three-hosts": THREE_HOSTS,
    "long": LONG,
    "pipeline": PIPELINE,
    "experts": EXPERTS,
    "images": IMAGES,
    "clicks": CLICKS,
}
SERVERS: dict[str, Broken] = {"server": SERVER, "prefixes": PREFIXES}
ALL = {**JOBS, **SERVERS}
BROKEN = [(name, cause) for name, (_, faults) in ALL.items() for cause in faults]
SEED = 77


def scenario_of(name: str, *causes: str, **changed: Any) -> Scenario:
    """The scenario of a job with some of the faults that are listed for it.

    `changed`: other ranks, steps or parameters of the workload.
    """
    job, faults = ALL[name]
    arms = {cause: {"fault": cause, "parameters": faults[cause]} for cause in causes}
    given: dict[str, Any] = {"name": name, "steps": 24, "profiled_steps": 2, "arms": arms, **job}
    given |= {key: value for key, value in changed.items() if key in Scenario.model_fields}
    sizes = {key: value for key, value in changed.items() if key not in Scenario.model_fields}
    given["parameters"] = {**given["parameters"], **sizes}
    plans = (TWIN, *(CasePlan(arm=cause) for cause in causes))
    return Scenario.model_validate({**given, "cases": plans})


def job_of(name: str, **changed: Any) -> Job:
    return set_up(scenario_of(name, **changed), SEED)


def test_every_simulated_cause_has_a_job() -> None:
    simulated = {cause for cause, fault in FAULTS.items() if fault.simulated is not None}
    assert sorted(cause for _, cause in BROKEN) == sorted(simulated)


@pytest.mark.parametrize(("name", "cause"), BROKEN)
def test_edits_the_jobs_mechanism_and_nothing_else(name: str, cause: str) -> None:
    fault = scenario_of(name, cause).faults()[cause]
    before, job = job_of(name), job_of(name)
    fault.perturb(job)
    assert (job.workload, job.machine, job.places) == (
        before.workload,
        before.machine,
        before.places,
    )
    assert (job.seed, job.steps, job.profiled_steps) == (SEED, before.steps, before.profiled_steps)
    changed = {key for key, value in asdict(job).items() if value != asdict(before)[key]}
    assert changed - {"versions"}
    again = job_of(name)
    fault.perturb(again)
    assert again == job


@pytest.mark.parametrize(("name", "cause"), BROKEN)
def test_place_and_victims_are_the_topologys(name: str, cause: str) -> None:
    scenario = scenario_of(name, cause)
    fault, where = scenario.faults()[cause], _topology(scenario)
    locus, victims = fault.locus(where), fault.victims(where)
    ranks = {place.rank for place in where.ranks}
    assert set(locus.ranks) | set(victims) <= ranks
    assert set(locus.hosts) <= {place.host for place in where.ranks}
    assert set(locus.gpus) <= {place.gpu for place in where.ranks}
    assert set(locus.links) <= {link.name for link in where.links}
    assert not set(locus.ranks) & set(victims)


def _topology(scenario: Scenario) -> Topology:
    return topology(scenario.places, has_gpus=True, stages=scenario.name == "pipeline")


@pytest.mark.parametrize("cause", ["cpu_contention_colocated", "monitoring_interference"])
def test_a_host_is_named_where_there_are_several(cause: str) -> None:
    fault = FAULTS[cause].model_validate(
        {"processes": 900, "host": 1} if "cpu" in cause else {"host": 1}
    )
    assert fault.locus(_topology(scenario_of("two-hosts"))).hosts == ("host1",)
    assert fault.victims(_topology(scenario_of("two-hosts"))) == tuple(range(8))
    only = fault.model_copy(update={"host": 0})
    assert only.locus(_topology(scenario_of("training"))).scope == "job"


def test_other_jobs_traffic_is_on_all_links_and_a_slow_path_is_one() -> None:
    where = _topology(scenario_of("three-hosts"))
    congestion = FAULTS["network_congestion"].model_validate({"source": None})
    assert len(congestion.locus(where).links) == 3
    link = FAULTS["slow_link"].model_validate({"rank": 0, "peer": 17, "rate_mbit_per_s": 1})
    assert link.locus(where).links == ("host0-host2",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("simulated")


@pytest.mark.parametrize("name", JOBS)
def test_faults_are_proven_and_their_witnesses_hold(name: str, folder: Path) -> None:
    """Each costs more than the threshold; its witness is true on it and false on the twin."""
    group = Group(scenario_of(name, *JOBS[name][1]))
    target = Places(folder / "suites" / name, folder / "labels" / name)
    line = write_group(group.make(), group.digest, target)
    assert not line.refused
    assert len(line.made) == 1 + len(JOBS[name][1])


@pytest.mark.parametrize("name", ["training", "images"])
def test_audits_tell_the_fault_without_a_reference_run(name: str, folder: Path) -> None:
    causes = [
        cause for cause, parameters in JOBS[name][1].items()
        if FAULTS[cause].model_validate(parameters).audit_witness() is not None
        and cause != "dataloader_cpu_bound"  # of few ranks with many cores: not told without one
    ]  # fmt: skip
    group = Group(scenario_of(name, *causes, question="audit"))
    audits = folder / "audits"
    line = write_group(
        group.make(), group.digest, Places(audits / "suites" / name, audits / "labels" / name)
    )
    assert not line.refused
    assert len(line.made) == 1 + len(causes)


@pytest.mark.parametrize(("name", "cause"), [case for case in BROKEN if case[0] in SERVERS])
def test_faults_of_servers_cost_time(name: str, cause: str) -> None:
    fault, job = scenario_of(name, cause).faults()[cause], job_of(name)
    fault.perturb(job)
    assert measure(job) > FAULTY_ABOVE * measure(job_of(name))


# Odd but healthy.

HARMLESS: dict[str, tuple[str, dict[str, Any]]] = {
    "slow_first_step": ("training", {"first_s": 1.0}),
    "low_priority_competitor": ("training", {"processes": 200, "nice": 19}),
    "hidden_slow_read": ("images", {"megabytes_per_s": 25}),
    "cheap_periodic_checkpoint": ("training", {"every": 8, "megabytes": 5}),
    "cost_moves_to_next_sync": ("two-hosts", {}),
    "last_arriver": ("pipeline", {}),
    "waiting_sync_hotspot": ("training", {"reads": 2}),
    "busy_waiting_cpu": ("training", {}),
    "spinning_collective_utilization": ("training", {"rank": 2}),
    "low_power_while_waiting": ("training", {"rank": 2, "faster": 1.15}),
    "simultaneous_global_drop": ("two-hosts", {"flows": 3, "on_ms": 30, "every_ms": 700}),
    "observer_effect": ("training", {"host_time": 2.0}),
    "idle_pcie_generation": ("training", {"rank": 3, "late_s": 0.5}),
    "coincident_version_change": ("training", {}),
    "steady_undersupply_rhythm": ("images", {"fetch_ms": 233}),
    "blind_instrument": ("training", {"rank": 1}),
    "utilization_falls_with_speedup": ("small-gradients", {"faster": 1.2}),
    "healthy_surface": ("server", {"max_num_batched_tokens": 1536}),
}


def test_every_simulated_decoy_has_a_job() -> None:
    assert HARMLESS.keys() == {
        name for name, decoy in DECOYS.items() if decoy.simulated is not None
    }


@pytest.mark.parametrize("decoy", HARMLESS)
def test_decoys_change_the_job_and_cost_nothing(decoy: str) -> None:
    name, parameters = HARMLESS[decoy]
    scenario = scenario_of(name)
    injection = DECOYS[decoy].model_validate(parameters)
    assert injection.fits(scenario) and injection.simulated_misfit(scenario) is None
    job = job_of(name)
    injection.perturb(job)
    assert job != job_of(name)
    assert 1 / FAULTY_ABOVE < measure(job) / measure(job_of(name)) < HEALTHY_BELOW


# Published findings come out of the simulation.


def run_of(job: Job) -> Run:
    return simulate(job, compiled(job), sampled=(0,))


def test_the_slow_rank_has_the_shortest_communication_kernels() -> None:
    job = job_of("training")
    job.gpus.silicon_q16[5] = round(0.8 * ONE)
    run = run_of(job)
    found = run.collectives["m0/ddp/bucket0"]
    length = (found.end - found.start)[1:].mean(axis=0)
    assert length.argmin() == 5
    assert length[5] < 0.7 * np.delete(length, 5).min()


def test_slowing_a_collective_that_is_hidden_costs_exactly_nothing() -> None:
    job = job_of("training")
    job.gpus.overlap_q16 = job.gpus.contention_q16 = 0
    program = compiled(job)
    buckets = [
        i for i, op in enumerate(program.ops)
        if op.kind == Kind.COLLECTIVE and op.stream == Stream.DATA_PARALLEL and "bucket" in op.path
    ]  # fmt: skip

    def with_longer(number: int) -> float:
        ops = list(program.ops)
        ops[number] = replace(ops[number], memory_ns=ops[number].memory_ns * 3)
        return seconds(job, replace(program, ops=ops))

    usual = seconds(job, program)
    assert with_longer(buckets[1]) == usual
    assert with_longer(buckets[-1]) > 1.02 * usual


def test_data_parallel_ranks_have_equal_backward_times() -> None:
    job = job_of("training")
    job.gpus.silicon_q16[5] = round(0.8 * ONE)
    found = phases(run_of(job))
    forward, backward = (found[name][1:].mean(axis=0) for name in ("forward_ns", "backward_ns"))
    others = np.delete(np.arange(8), 5)
    assert forward[5] > 1.12 * forward[others].max()
    # The others wait in backward for what the slow one was late by in forward as well.
    assert backward[others].min() > backward[5]
    assert backward.max() < 1.1 * backward.min()


@pytest.mark.parametrize("micro_batches", [4, 8, 16])
def test_a_pipelines_bubble_is_near_its_stages_less_one_over_its_micro_batches(
    micro_batches: int,
) -> None:
    # 31 layers and the output of four stages are about equal.
    sizes = {"layers": 31, "micro_batch": 4, "accumulation": micro_batches}
    run = run_of(job_of("pipeline", ranks=4, **sizes))
    busy = np.stack([state.kernels_ns for state in run.devices])[2:].mean()
    idle = run.step_ns[2:].mean() / busy - 1
    assert idle == pytest.approx((4 - 1) / micro_batches, abs=0.06)


def test_a_launch_bound_step_hardly_grows_with_the_batch() -> None:
    def step_s(micro_batch: int, hidden: int) -> float:
        sizes = {"micro_batch": micro_batch, "hidden": hidden}
        return measure(job_of("small-gradients", ranks=1, steps=24, **sizes))

    assert step_s(4, hidden=256) < 1.1 * step_s(1, hidden=256)
    assert step_s(16, hidden=2048) > 2 * step_s(4, hidden=2048)
