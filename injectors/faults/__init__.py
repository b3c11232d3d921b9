"""Faults by the name of their cause; the mission's four families are made of these.

throttled_loader: storage_fetch_stall, dataloader_cpu_bound; slow_ring: slow_link;
unfused_kernels; host_contention: cpu_contention_colocated, memory_bandwidth_contention.
"""

from injectors.faults.allocator_retry import AllocatorRetry
from injectors.faults.async_checkpoint_interference import AsyncCheckpointInterference
from injectors.faults.attention_backend_fallback import AttentionBackendFallback
from injectors.faults.autotune_per_shape import AutotunePerShape
from injectors.faults.base import Decoy, Fault, Injection, Run
from injectors.faults.blocking_metric_io import BlockingMetricIo
from injectors.faults.cgroup_cpu_throttle import CgroupCpuThrottle
from injectors.faults.comm_overlap_lost import CommOverlapLost
from injectors.faults.cpu_contention import CpuContention
from injectors.faults.cpu_low_frequency import CpuLowFrequency
from injectors.faults.data_straggler_rank import DataStragglerRank
from injectors.faults.dataloader_cpu_bound import DataloaderCpuBound
from injectors.faults.debug_env_left_on import DebugEnvLeftOn
from injectors.faults.decode_batch_kv_limited import DecodeBatchKvLimited
from injectors.faults.embedding_shard_imbalance import EmbeddingShardImbalance
from injectors.faults.engine_cpu_bound import EngineCpuBound
from injectors.faults.excessive_small_collectives import ExcessiveSmallCollectives
from injectors.faults.foreach_disabled import ForeachDisabled
from injectors.faults.gpu_noisy_neighbor import GpuNoisyNeighbor
from injectors.faults.gpu_silicon_variability import GpuSiliconVariability
from injectors.faults.grad_sync_every_microbatch import GradSyncEveryMicrobatch
from injectors.faults.high_latency_link import HighLatencyLink
from injectors.faults.host_device_sync import HostDeviceSync
from injectors.faults.idle_device_misconfig import IdleDeviceMisconfig
from injectors.faults.jit_during_serving import JitDuringServing
from injectors.faults.kernel_launch_bound import KernelLaunchBound
from injectors.faults.kernel_regression import KernelRegression
from injectors.faults.kv_cache_disabled import KvCacheDisabled
from injectors.faults.kv_cache_preemption import KvCachePreemption
from injectors.faults.lossy_link import LossyLink
from injectors.faults.memory_bandwidth import MemoryBandwidth
from injectors.faults.moe_expert_imbalance import MoeExpertImbalance
from injectors.faults.monitoring_interference import MonitoringInterference
from injectors.faults.nccl_p2p_disabled import NcclP2pDisabled
from injectors.faults.nccl_sm_contention import NcclSmContention
from injectors.faults.nccl_transport_fallback import NcclTransportFallback
from injectors.faults.nccl_tuning_regression import NcclTuningRegression
from injectors.faults.network_congestion import NetworkCongestion
from injectors.faults.nic_degraded import NicDegraded
from injectors.faults.numa_misplacement import NumaMisplacement
from injectors.faults.nvlink_degraded import NvlinkDegraded
from injectors.faults.padding_waste import PaddingWaste
from injectors.faults.pageable_h2d_copy import PageableH2dCopy
from injectors.faults.pcie_downgrade import PcieDowngrade
from injectors.faults.power_cap import PowerCap
from injectors.faults.pp_stage_imbalance import PpStageImbalance
from injectors.faults.precision_fallback import PrecisionFallback
from injectors.faults.prefill_decode_interference import PrefillDecodeInterference
from injectors.faults.prefix_cache_routing_miss import PrefixCacheRoutingMiss
from injectors.faults.process_suspended import ProcessSuspended
from injectors.faults.python_gc_pause import PythonGcPause
from injectors.faults.random_access_index_mapping import RandomAccessIndexMapping
from injectors.faults.rank_affinity_overlap import RankAffinityOverlap
from injectors.faults.rank_extra_host_work import RankExtraHostWork
from injectors.faults.recompilation_churn import RecompilationChurn
from injectors.faults.recompile_limit import RecompileLimit
from injectors.faults.roce_flow_control_loss import RoceFlowControlLoss
from injectors.faults.sequence_length_imbalance import SequenceLengthImbalance
from injectors.faults.slow_link import SlowLink
from injectors.faults.slow_loader_worker import SlowLoaderWorker
from injectors.faults.spec_decode_overhead import SpecDecodeOverhead
from injectors.faults.storage_fetch_stall import StorageFetchStall
from injectors.faults.structured_output_cpu_bound import StructuredOutputCpuBound
from injectors.faults.sync_checkpoint import SyncCheckpoint
from injectors.faults.thermal_throttle import ThermalThrottle
from injectors.faults.thread_oversubscription import ThreadOversubscription
from injectors.faults.too_few_loader_workers import TooFewLoaderWorkers
from injectors.faults.unbatched_decoding import UnbatchedDecoding
from injectors.faults.undersized_buckets import UndersizedBuckets
from injectors.faults.unfused_kernels import UnfusedKernels
from injectors.faults.vram_sysmem_spill import VramSysmemSpill
from injectors.faults.worker_affinity_pinned import WorkerAffinityPinned
from injectors.faults.worker_respawn_each_epoch import WorkerRespawnEachEpoch

FAULTS: dict[str, type[Fault]] = {
    fault.cause: fault
    for fault in (
        StorageFetchStall,
        DataloaderCpuBound,
        SlowLink,
        UnfusedKernels,
        CpuContention,
        MemoryBandwidth,
        CgroupCpuThrottle,
        GpuNoisyNeighbor,
        LossyLink,
        MonitoringInterference,
        NetworkCongestion,
        NicDegraded,
        ProcessSuspended,
        EmbeddingShardImbalance,
        MoeExpertImbalance,
        PpStageImbalance,
        AttentionBackendFallback,
        BlockingMetricIo,
        CommOverlapLost,
        DebugEnvLeftOn,
        ForeachDisabled,
        GradSyncEveryMicrobatch,
        HostDeviceSync,
        KernelLaunchBound,
        PaddingWaste,
        PrecisionFallback,
        PythonGcPause,
        SequenceLengthImbalance,
        UndersizedBuckets,
        AsyncCheckpointInterference,
        DataStragglerRank,
        PageableH2dCopy,
        RandomAccessIndexMapping,
        SlowLoaderWorker,
        SyncCheckpoint,
        ThreadOversubscription,
        WorkerAffinityPinned,
        WorkerRespawnEachEpoch,
        DecodeBatchKvLimited,
        EngineCpuBound,
        JitDuringServing,
        KvCacheDisabled,
        KvCachePreemption,
        PrefillDecodeInterference,
        PrefixCacheRoutingMiss,
        SpecDecodeOverhead,
        StructuredOutputCpuBound,
        UnbatchedDecoding,
        RecompilationChurn,
        RecompileLimit,
        AutotunePerShape,
        KernelRegression,
        AllocatorRetry,
        NcclTransportFallback,
        NcclP2pDisabled,
        NcclTuningRegression,
        NcclSmContention,
        CpuLowFrequency,
        ExcessiveSmallCollectives,
        GpuSiliconVariability,
        HighLatencyLink,
        IdleDeviceMisconfig,
        NumaMisplacement,
        NvlinkDegraded,
        PcieDowngrade,
        PowerCap,
        RankAffinityOverlap,
        RankExtraHostWork,
        RoceFlowControlLoss,
        ThermalThrottle,
        TooFewLoaderWorkers,
        VramSysmemSpill,
    )
}

__all__ = ["FAULTS", "Decoy", "Fault", "Injection", "Run"]
