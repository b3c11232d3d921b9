"""The shipped taxonomy: complete, consistent, and telling its causes apart by real signals."""

import itertools
import re

import pytest

from cases.causes import COLUMNS, check_signal
from cases.documents import parse_record, parse_yaml
from cases.errors import InputError, RecordError
from cases.taxonomy import TAXONOMY_FILE, Taxonomy, TaxonomyFile

KNOWN_FROM_REPORTS = """
    pp_stage_imbalance sequence_length_imbalance moe_expert_imbalance python_gc_pause
    host_device_sync kernel_launch_bound grad_sync_every_microbatch comm_overlap_lost
    precision_fallback attention_backend_fallback blocking_metric_io idle_device_misconfig
    dataloader_cpu_bound storage_fetch_stall data_straggler_rank worker_affinity_pinned
    thread_oversubscription worker_respawn_each_epoch random_access_index_mapping
    pageable_h2d_copy sync_checkpoint async_checkpoint_interference recompilation_churn
    recompile_limit_eager_fallback autotune_per_shape jit_during_serving ptx_jit_startup
    kernel_regression allocator_retry_fragmentation nccl_transport_fallback nccl_p2p_disabled
    nvlink_degraded nccl_tuning_regression nccl_sm_contention debug_env_left_on
    cpu_contention_colocated cgroup_cpu_throttle numa_misplacement cpu_low_frequency
    network_congestion roce_flow_control_loss nic_degraded monitoring_interference
    vram_sysmem_spill thermal_throttle power_cap pcie_downgrade gpu_silicon_variability
    gpu_noisy_neighbor kv_cache_preemption prefill_decode_interference
    prefix_cache_routing_miss structured_output_cpu_bound spec_decode_overhead
    engine_cpu_bound decode_batch_kv_limited
"""
KNOWN_FROM_INJECTION = """
    unfused_kernels slow_link lossy_link high_latency_link padding_waste undersized_buckets
    excessive_small_collectives memory_bandwidth_contention kv_cache_disabled
    unbatched_decoding slow_loader_worker too_few_loader_workers process_suspended
    foreach_disabled rank_affinity_overlap rank_extra_host_work embedding_shard_imbalance
"""
FIRST_INJECTED = """
    storage_fetch_stall dataloader_cpu_bound slow_link unfused_kernels cpu_contention_colocated
    memory_bandwidth_contention nic_degraded network_congestion cgroup_cpu_throttle
    data_straggler_rank sync_checkpoint kernel_launch_bound
"""
CAUSE = """
          {name}:
            title: Short
            mechanism: One sentence here.
            symptoms: [slow]
            decisive_signals: [{signal}]
            confused_with: [{confusion}]
            sources: [{{work: us, mark: inference}}]
            injectable_on: []"""
HEAD = """format: evalharness.taxonomy/1.0
version: "2026.11"
domains:
  upper:
    title: Upper
    mechanisms:
      middle:
        title: Middle
        causes:"""


def confused(cause: str) -> str:
    return f"{{cause: {cause}, discriminator: Look at loader.read_ns.}}"


def build(*causes: tuple[str, str], signal: str = "loader.read_ns", tail: str = "") -> Taxonomy:
    """A small taxonomy from (name, confusions) pairs."""
    entries = [CAUSE.format(name=name, confusion=text, signal=signal) for name, text in causes]
    data = parse_yaml(HEAD + "".join(entries) + tail, "small.yaml")
    return Taxonomy(parse_record(data, TaxonomyFile, "small.yaml"), "small.yaml")


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    return Taxonomy.load()


def test_every_known_cause_is_there_and_no_other(taxonomy):
    assert len(KNOWN_FROM_REPORTS.split()) == 56
    assert set(taxonomy.causes) == {*KNOWN_FROM_REPORTS.split(), *KNOWN_FROM_INJECTION.split()}


def test_depth_is_three_and_names_are_unique(taxonomy):
    assert len(set(taxonomy.nodes)) == len(taxonomy.nodes)
    for cause in taxonomy.causes:
        mechanism, domain = taxonomy.ancestors(cause)
        assert (taxonomy.mechanism(cause), taxonomy.domain(cause)) == (mechanism, domain)
        assert taxonomy.parent(domain) is None
    assert taxonomy.domains == (
        "model_framework",
        "data_checkpoint",
        "compiler_kernel",
        "cuda_nccl",
        "host_network",
        "gpu_hardware",
        "inference",
    )


def test_domains_part_the_causes(taxonomy):
    parts = [taxonomy.leaves(domain) for domain in taxonomy.domains]
    assert [cause for part in parts for cause in part] == list(taxonomy.causes)


def test_covers_a_node_and_what_is_above_it(taxonomy):
    above = [node for node in taxonomy.nodes if taxonomy.covers(node, "slow_link")]
    assert above == ["host_network", "network_path", "slow_link"]
    assert taxonomy.leaves("slow_link") == ("slow_link",)
    assert taxonomy.children("gpu_sharing") == ("gpu_noisy_neighbor",)
    assert taxonomy.mechanism("inference") is None


def test_confusions_are_symmetric_with_one_sentence(taxonomy):
    for name, cause in taxonomy.causes.items():
        assert cause.confused_with, name
        for other in cause.confused_with:
            back = {c.cause: c.discriminator for c in taxonomy.causes[other.cause].confused_with}
            assert back[name] == other.discriminator


def test_first_injected_causes_are_told_apart_pair_by_pair(taxonomy):
    first = FIRST_INJECTED.split()
    pairs = set(itertools.permutations(first, 2))
    known = {(a, b) for a in first for b in taxonomy.confusable(a)}
    assert pairs <= known


def test_discriminators_name_a_signal_that_exists(taxonomy):
    token = re.compile(rf"\b(?:{'|'.join(COLUMNS)}|config|environment)\.[A-Za-z]\w*")
    for name, cause in taxonomy.causes.items():
        for other in cause.confused_with:
            signals = token.findall(other.discriminator)
            assert signals, (name, other)
            assert [check_signal(signal) for signal in signals] == signals


def test_tie_breaks_decoys_and_gaps(taxonomy):
    assert ("slow_link", "nic_degraded", "network_congestion") in {
        rule.causes for rule in taxonomy.tie_breaks
    }
    assert len(taxonomy.decoys) == 21
    assert {"low_priority_competitor", "hidden_slow_read", "cheap_periodic_checkpoint"} < set(
        taxonomy.decoys
    )
    assert len(taxonomy.insufficient) == 11
    assert not set(taxonomy.decoys) & set(taxonomy.nodes)
    assert not set(taxonomy.insufficient) & set(taxonomy.nodes)


def test_clocks_and_links_of_a_gpu_are_never_touched(taxonomy):
    for cause in taxonomy.leaves("gpu_clocks") + taxonomy.leaves("device_links"):
        assert taxonomy.causes[cause].injectable_on == ()


def test_default_is_read_once_and_a_path_gives_the_same(taxonomy):
    assert Taxonomy.load() is taxonomy
    again = Taxonomy.load(TAXONOMY_FILE)
    assert again is not taxonomy
    assert (again.version, again.digest) == (taxonomy.version, taxonomy.digest)


def test_digest_follows_the_content_not_its_layout(tmp_path, taxonomy):
    text = TAXONOMY_FILE.read_text(encoding="utf-8")
    (tmp_path / "same.yaml").write_text("# a remark\n" + text, encoding="utf-8")
    changed = text.replace("title: Inference engines", "title: Inference")
    (tmp_path / "changed.yaml").write_text(changed, encoding="utf-8")
    assert Taxonomy.load(tmp_path / "same.yaml").digest == taxonomy.digest
    assert Taxonomy.load(tmp_path / "changed.yaml").digest != taxonomy.digest


def test_unknown_name_lists_close_ones(taxonomy):
    with pytest.raises(InputError, match=r"slow_link.*found 'slow_lnk'"):
        taxonomy.resolve("slow_lnk")
    with pytest.raises(InputError, match="domains: model_framework"):
        taxonomy.parent("zzz")


def test_small_taxonomy_mirrors_its_confusion():
    small = build(("first", confused("second")), ("second", ""))
    assert small.confusable("second") == ("first",)
    assert {cause.confused_with[0].subject for cause in small.causes.values()} == {"first"}
    assert small.ancestors("first") == ("middle", "upper")


@pytest.mark.parametrize(
    ("causes", "message"),
    [
        ([("first", confused("third"))], r"small.yaml: first.confused_with: must name a cause"),
        ([("first", confused("first"))], r"first.confused_with: must name each pair"),
        ([("a", confused("b")), ("b", confused("a"))], r"b.confused_with: must name each pair"),
        ([("middle", "")], r"middle: must have each name once in the whole tree"),
        ([("a", ""), ("a", "")], r"key 'a' stands twice"),
    ],
)
def test_inconsistent_names_are_refused(causes, message):
    with pytest.raises(RecordError, match=message):
        build(*causes)


def test_unknown_signal_names_the_node():
    with pytest.raises(RecordError, match=r"middle.causes.first.*table.column.*loader.colour"):
        build(("first", ""), signal="loader.colour")


def test_decoys_and_gaps_must_name_causes():
    tail = """
decoys:
  odd_sign:
    looks_like: [nobody]
    seems: Something odd.
    healthy_because: It costs nothing.
    sources: [{work: us, mark: inference}]
"""
    with pytest.raises(RecordError, match=r"decoys.odd_sign.looks_like.*'nobody'"):
        build(("first", ""), tail=tail)
