"""What every fault and decoy must satisfy, looped over the tables."""

import inspect
import math
import time
from contextlib import contextmanager

import pytest
from pydantic import ValidationError

from cases.errors import ScenarioError
from cases.taxonomy import Taxonomy
from injectors import matrix
from injectors.decoys import DECOYS
from injectors.faults import FAULTS
from injectors.recorder.knobs import DEFAULTS, Knobs
from injectors.scenario import Scenario
from injectors.sim.workloads import SIMULATED
from injectors.workloads import WORKLOADS
from injectors.workloads.storage import Storage

PARAMETERS = {
    "storage_fetch_stall": {"megabytes_per_s": 2},
    "dataloader_cpu_bound": {"decode_passes": 20},
    "slow_link": {"rank": 1, "rate_mbit_per_s": 100},
    "unfused_kernels": {"layers": 2},
    "cpu_contention_colocated": {"processes": 1},
    "memory_bandwidth_contention": {},
    "attention_backend_fallback": {"layers": 2},
    "blocking_metric_io": {"response_s": 0.2},
    "comm_overlap_lost": {"buckets": 3},
    "host_device_sync": {"gradients": 8},
    "kernel_launch_bound": {"pieces": 4},
    "padding_waste": {"padded_tokens": 256},
    "python_gc_pause": {"records_per_micro_batch": 1000},
    "undersized_buckets": {"bucket_mb": 0.01},
    "async_checkpoint_interference": {"every": 10, "megabytes": 4},
    "data_straggler_rank": {"latency_ms": 5},
    "slow_loader_worker": {"latency_ms": 5},
    "sync_checkpoint": {"every": 5, "megabytes": 20},
    "thread_oversubscription": {"threads": 8},
    "cgroup_cpu_throttle": {"cores": 0.5, "rank": 1},
    "lossy_link": {"rank": 1, "loss_fraction": 0.02},
    "nic_degraded": {"host": 1, "rate_mbit_per_s": 100},
    "process_suspended": {"stopped_fraction": 0.4},
    "embedding_shard_imbalance": {"share": 0.5, "rank": 1},
    "moe_expert_imbalance": {"bias_logits": 1.0, "rank": 1},
    "pp_stage_imbalance": {"layers": 1},
    "decode_batch_kv_limited": {"kv_blocks": 24},
    "engine_cpu_bound": {"logprobs": 20},
    "jit_during_serving": {"share": 0.5},
    "kv_cache_disabled": {"share": 0.5},
    "kv_cache_preemption": {"kv_blocks": 24},
    "prefill_decode_interference": {"share": 1.0},
    "prefix_cache_routing_miss": {"share": 1.0},
    "spec_decode_overhead": {"draft_tokens": 3},
    "structured_output_cpu_bound": {"share": 0.5},
    "recompilation_churn": {"every": 5},
    "kernel_regression": {"layers": 2},
    "hidden_slow_read": {"megabytes_per_s": 20},
    "cpu_low_frequency": {"speed": 0.6},
    "excessive_small_collectives": {"collectives": 100},
    "gpu_silicon_variability": {"speed": 0.8},
    "high_latency_link": {"peer": 1, "latency_us": 500},
    "numa_misplacement": {"ranks": (0,)},
    "nvlink_degraded": {"bandwidth_left": 0.5},
    "power_cap": {"limit_w": 400},
    "rank_affinity_overlap": {"ranks": (0, 1)},
    "rank_extra_host_work": {"extra_ms": 5},
    "roce_flow_control_loss": {"bandwidth_left": 0.3},
    "too_few_loader_workers": {"workers": 1},
    "vram_sysmem_spill": {"share": 0.02},
    "simultaneous_global_drop": {"on_ms": 20, "every_ms": 500},
    "steady_undersupply_rhythm": {"fetch_ms": 200},
    "healthy_surface": {"max_num_batched_tokens": 1024},
}
ALL = {**FAULTS, **DECOYS}
SIMULATED_ALONE = sorted(name for name, injection in ALL.items() if "simulator" in injection.needs)
RECORDED = sorted(ALL.keys() - set(SIMULATED_ALONE))


class FakeRun:
    """Records what an injection reaches for."""

    def __init__(self):
        self.knobs = Knobs()
        self.log = []

    @property
    def network(self):
        return self

    @contextmanager
    def held(self, *what):
        self.log.append(what)
        yield
        self.log.append("undone")

    shaped = shaped_interface = lossy = held
    competitors = device_neighbours = quota = suspended = traffic = held

    def metrics_port(self, response_s):
        return 1


def state(run):
    return {name: run.knobs[name] for name in DEFAULTS}


@pytest.mark.parametrize("name", RECORDED)
def test_acts_and_undoes_itself_on_every_exit(name):
    injection = ALL[name].model_validate(PARAMETERS.get(name, {}))
    run = FakeRun()
    with pytest.raises(RuntimeError, match="broken"), injection.inject(run):
        changed = state(run) != DEFAULTS or run.log or injection.settings()
        assert changed, "nothing was changed"
        raise RuntimeError("broken")
    assert state(run) == DEFAULTS


@pytest.mark.parametrize("name", SIMULATED_ALONE)
def test_what_only_the_simulator_breaks_refuses_a_running_job_by_name(name):
    injection = ALL[name].model_validate(PARAMETERS.get(name, {}))
    with pytest.raises(ScenarioError, match=f"{name}.*can only be simulated"):
        injection.inject(FakeRun())
    assert injection.simulated is not None


def test_every_cause_is_simulated_but_the_one_that_is_paid_before_the_first_step():
    simulated = {cause for cause, fault in FAULTS.items() if fault.simulated is not None}
    assert set(Taxonomy.load().causes) - simulated == {"ptx_jit_startup"}


@pytest.mark.parametrize("cause", FAULTS)
def test_fault_is_in_the_taxonomy(cause):
    taxonomy = Taxonomy.load()
    fault = FAULTS[cause]
    assert fault.cause == cause
    for name in (cause, *fault.acceptable, *fault.symptoms):
        assert name in taxonomy.causes


@pytest.mark.parametrize("name", DECOYS)
def test_decoy_is_in_the_taxonomy(name):
    taxonomy = Taxonomy.load()
    assert name in taxonomy.decoys
    assert all(cause in taxonomy.causes for cause in DECOYS[name].looks_like)


@pytest.mark.parametrize("cause", FAULTS)
def test_fault_states_mechanism_and_source(cause):
    words = inspect.getdoc(FAULTS[cause]) or ""
    assert "Mechanism:" in words
    assert "Source:" in words


@pytest.mark.parametrize("name", ALL)
def test_needs_are_known_capabilities(name):
    assert set(ALL[name].needs) <= set(matrix.CAPABILITIES)


@pytest.mark.parametrize("name", ALL)
def test_workloads_are_known(name):
    assert set(ALL[name].workloads) <= set(WORKLOADS)
    assert set(ALL[name].simulated or ()) <= set(SIMULATED)


@pytest.mark.parametrize(
    ("cause", "parameters"),
    [
        ("blocking_metric_io", {"response_s": 0.02, "every": 3}),
        ("debug_env_left_on", {"every": 3}),
        ("sync_checkpoint", {"every": 3, "megabytes": 1}),
        ("async_checkpoint_interference", {"every": 3, "megabytes": 1}),
    ],
)
def test_trials_must_be_whole_periods(cause, parameters):
    scenario = {
        "name": "periods",
        "workload": "language_model",
        "trials": {"steps": 8},
        "arms": {"a": {"fault": cause, "parameters": parameters}},
        "cases": [{"arm": "a"}],
    }
    with pytest.raises(ValidationError, match=r"trials\.steps must be a multiple of 3, got 8"):
        Scenario.model_validate(scenario)
    Scenario.model_validate({**scenario, "trials": {"steps": 9}})


@pytest.mark.parametrize("cause", FAULTS)
def test_witness_can_be_asked_of_every_case(cause, tiny_suite):
    from cases.bundle import Suite
    from cases.witness import holds

    suite = Suite.open(tiny_suite)
    fault = FAULTS[cause].model_validate(PARAMETERS.get(cause, {}))
    for sql, says in (fault.witness(), fault.simulated_witness()):
        assert says
        for case_id in suite.case_ids:
            assert isinstance(holds(suite.case(case_id), sql), bool)


@pytest.mark.parametrize("cause", FAULTS)
def test_audit_witness_asks_no_reference_run(cause, tiny_suite):
    from cases.bundle import Suite
    from cases.witness import holds

    suite = Suite.open(tiny_suite)
    found = FAULTS[cause].model_validate(PARAMETERS.get(cause, {})).audit_witness()
    if found is None:
        return
    sql, says = found
    assert says and "reference" not in sql
    for case_id in suite.case_ids:
        assert isinstance(holds(suite.case(case_id), sql), bool)


def test_storage_shares_one_bandwidth(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 20_000)
    knobs = Knobs()
    storage = Storage(tmp_path, knobs)
    begin = time.monotonic()
    for _ in range(5):
        storage.read("a")
    free = time.monotonic() - begin
    with knobs.turned(storage_bytes_per_s=1e6):
        begin = time.monotonic()
        for _ in range(5):
            assert len(storage.read("a")) == 20_000
        slow = time.monotonic() - begin
    assert slow >= 0.1  # 100,000 bytes at 1 MB/s
    assert free < slow / 2
    assert math.isinf(knobs["storage_bytes_per_s"])
