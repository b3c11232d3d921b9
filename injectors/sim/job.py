"""A simulated job as the parameters of its mechanisms: what faults edit before it is compiled.

A fault's `perturb(job)` changes these numbers and nothing else. What follows from them (more
kernels, longer transfers, hidden or exposed waits) is worked out by the workload that compiles
the job, by the conditions of every step and by the engine.

Shares and factors are Q16: 65536 is 1.0. Per-rank and per-host settings are dictionaries in which
what is absent is ordinary.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from injectors.sim.machine import Machine
from injectors.sim.twin import Twin
from injectors.workloads.base import Workload

ONE = 65536


@dataclass(frozen=True)
class Places:
    """Where ranks run and how the job is split over them.

    Ranks count the tensor-parallel position fastest, then data (or expert) parallel, then the
    pipeline stage, so that tensor-parallel groups share a host.

    Attributes:
        ranks: Ranks of the job.
        per_host: Ranks of a host.
        data, tensor, pipeline: Ways of each split; their product is `ranks`.
        expert: Ranks of an expert-parallel group, within the data-parallel ones.
    """

    ranks: int
    per_host: int
    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return -(-self.ranks // self.per_host)

    def host(self, rank: int) -> int:
        """Host of a rank."""
        return rank // self.per_host

    def stage(self, rank: int) -> int:
        """Pipeline stage of a rank."""
        return rank // (self.tensor * self.data)

    def ranks_of_host(self, host: int) -> list[int]:
        """Ranks that run on a host."""
        return [rank for rank in range(self.ranks) if self.host(rank) == host]

    def ranks_of_stage(self, stage: int) -> list[int]:
        """Ranks of a pipeline stage."""
        return [rank for rank in range(self.ranks) if self.stage(rank) == stage]

    def tensor_groups(self) -> list[list[int]]:
        """Groups of ranks that share each layer."""
        return [
            list(range(first, first + self.tensor)) for first in range(0, self.ranks, self.tensor)
        ]

    def data_groups(self) -> list[list[int]]:
        """Groups of ranks that hold the same parameters."""
        block = self.tensor * self.data
        return [
            [stage * block + replica * self.tensor + lane for replica in range(self.data)]
            for stage in range(self.pipeline)
            for lane in range(self.tensor)
        ]

    def expert_groups(self) -> list[list[int]]:
        """Groups of ranks that share out the experts."""
        return [
            group[first : first + self.expert]
            for group in self.data_groups()
            for first in range(0, len(group), self.expert)
        ]


@dataclass
class Framework:
    """How the model is run: precision, fusion, attention, accumulation, communication schedule.

    Attributes:
        precision: Of the large products.
        attention: Which kernels attention dispatches to.
        fused: Whether element-wise chains and norms run as one kernel each.
        compiled_share_q16: Share of layers that run as compiled code (the rest is eager).
        foreach_optimizer: One kernel for many parameters, else one and more for each.
        micro_batch_split: Each micro-batch is cut into so many smaller ones, run after each other.
        sync_every_microbatch: Gradients are averaged after every micro-batch.
        overlap: Whether collectives run beside computation.
        bucket_bytes: Of gradient buckets.
        small_collectives: Further scalar all-reduces a step.
        read_backs: Further `.item()` calls a step.
        debug: What was left on.
        padded_q16: Tokens computed over tokens that the batch has.
        length_spread_q16: Spread of the summed squared lengths over ranks and steps (0: packed
            evenly).
        last_stage_layers_q16: Layers (Q16, so fractions too) that the last stage has beyond an even
            split, for logits and loss.
        efficiency_q16: Speed of large products over the usual, by the name of their family
            ("gemm", "attention", "norm", "elementwise", "convolution", "embedding").
        graphs: Whether decode steps are replayed as CUDA graphs (serving).
        wide_layers: First layers that compute in `wide_precision` whatever the others do.
        math_layers: First layers whose attention leaves its fused kernel.
        unfused_layers: First layers whose chains run op by op.
        plain: Whether layers that are not compiled are written in plain operators, op by op.
        late_wait: Whether the last gradients are waited for where the optimizer needs them, not
            at the end of backward.
    """

    precision: Literal["bf16", "tf32", "fp32"] = "bf16"
    attention: Literal["flash", "math"] = "flash"
    fused: bool = True
    compiled_share_q16: int = ONE
    foreach_optimizer: bool = True
    micro_batch_split: int = 1
    sync_every_microbatch: bool = False
    overlap: bool = True
    bucket_bytes: int = 25 * 2**20
    small_collectives: int = 0
    read_backs: int = 0
    debug: Literal["", "anomaly", "launch_blocking"] = ""
    padded_q16: int = ONE
    length_spread_q16: int = 0
    last_stage_layers_q16: int = 0
    efficiency_q16: dict[str, int] = field(default_factory=dict)
    graphs: bool = True
    wide_layers: int = 0
    wide_precision: Literal["tf32", "fp32"] = "fp32"
    math_layers: int = 0
    unfused_layers: int = 0
    plain: bool = False
    late_wait: bool = False

    def of_layer(self, number: int) -> Framework:
        """Return what holds for the `number`-th layer, if the first ones differ from the rest."""
        if number >= max(self.wide_layers, self.math_layers, self.unfused_layers):
            return self
        return replace(
            self,
            precision=self.wide_precision if number < self.wide_layers else self.precision,
            attention="math" if number < self.math_layers else self.attention,
            fused=self.fused and number >= self.unfused_layers,
        )


@dataclass
class Routing:
    """Uneven work of experts and embedding shards.

    Attributes:
        expert_share_q16: Tokens of a rank's experts over the even share.
        row_share_q16: Embedding rows that a rank serves over the even share.
    """

    expert_share_q16: dict[int, int] = field(default_factory=dict)
    row_share_q16: dict[int, int] = field(default_factory=dict)


@dataclass
class Loader:
    """The input pipeline of every rank.

    Attributes:
        workers, prefetch: As of torch's DataLoader.
        read_bytes: Of one batch.
        storage_bytes_per_s: What one worker reads from storage.
        request_ns: Latency of one read request; `requests` of them make a batch.
        decode_ns: CPU time of decoding and augmenting one batch.
        rank_q16: Time of a rank's fetches over the usual.
        straggler_q16: As `rank_q16` for one rank that changes every `straggler_every` steps.
        worker_q16: Time of one worker's fetches over the usual, by (rank, worker).
        worker_cores: Cores that a rank's workers share.
        pinned: Whether batches are copied from pinned memory.
        epoch_steps: Steps of an epoch; 0: longer than the recording.
        respawn_ns: What starting the workers again takes at each epoch; 0: they stay.
        extra_reads_q16: Bytes read over bytes used (random access in row groups).
    """

    workers: int = 4
    prefetch: int = 2
    read_bytes: int = 4 * 2**20
    storage_bytes_per_s: int = 10**9
    request_ns: int = 200_000
    requests: int = 4
    decode_ns: int = 10_000_000
    rank_q16: dict[int, int] = field(default_factory=dict)
    straggler_q16: int = ONE
    straggler_every: int = 5
    worker_q16: dict[tuple[int, int], int] = field(default_factory=dict)
    worker_cores: int = 4
    pinned: bool = True
    epoch_steps: int = 0
    respawn_ns: int = 0
    extra_reads_q16: int = ONE


@dataclass
class Checkpoint:
    """Saving: every `every` steps (0: never) `bytes` a rank, at `bytes_per_s`.

    An asynchronous save copies to the host at once and writes from a thread that takes the
    interpreter's lock for `lock_share_q16` of the time meanwhile.
    """

    every: int = 0
    bytes: int = 0
    bytes_per_s: int = 2 * 10**9
    asynchronous: bool = False
    lock_share_q16: int = 0
    ranks: tuple[int, ...] | None = (0,)


@dataclass
class Compiler:
    """Compilation and tuning that happen while the job runs; pauses of the launching thread.

    Attributes:
        recompile_every: Steps between recompilations, on all ranks at once; 0: never.
        recompile_ns: What one takes.
        autotune_every: Steps between new input shapes that are tuned for; 0: never.
        autotune_ns: What tuning takes.
        jit_ns: What compiling a kernel takes when a request needs it first (serving).
        jit_every: Engine steps between such requests on average; 0: never.
        first_ns: What compiling takes in the very first step, on all ranks.
    """

    recompile_every: int = 0
    recompile_ns: int = 0
    autotune_every: int = 0
    autotune_ns: int = 0
    jit_ns: int = 0
    jit_every: int = 0
    first_ns: int = 0


@dataclass
class Host:
    """The CPUs, and what else happens on the ranks' threads.

    Attributes:
        op_ns: Python and dispatch time of an eager op.
        hogs: Busy foreign threads of a host.
        pinned_hogs: Busy foreign threads on a rank's own core.
        hog_nice: The nice value of both; from 10 on they give way to the job.
        hog_duty_q16: Share of the time that they run.
        quota_q16: CPU seconds a second that a rank's processes may use; absent: no quota.
        threads: Threads of an operator of the loader and the host's own code.
        frequency_q16: Speed of a host's cores over nominal.
        shared_core: Ranks that run on the core of another one.
        remote_memory: Ranks whose memory lies on the other socket.
        suspended_q16: Share of the time that a rank's process stands still, in periods of
            `suspended_period_ns`.
        extra_ns: Further Python work of a rank in every step.
        gc_ns: What a full collection takes; `gc_every` steps apart on average on every rank
            (0: never, or at the same step on all ranks if `gc_together`).
        gc_together: Whether ranks collect at the same steps.
        gc_ranks: Ranks that collect at all, None for all.
        metric_every, metric_ns: A blocking upload every so many steps, on rank 0.
        poll_every_ns, poll_ns: A monitoring agent that holds the driver's lock on all ranks of
            `polled_hosts`.
        retry_every, retry_ns: Allocator retries: a synchronising free and allocate.
        memory_traffic_q16: Memory-bound host work takes so much longer (a host's memory bus).
        first_ns: What holds a rank's thread up in the very first step.
        spinning: Threads of each rank that only ask again and again, on cores that nobody needs.
        profiled_q16: Host time in profiled steps over that in others.
    """

    op_ns: int = 12_000
    hogs: dict[int, int] = field(default_factory=dict)
    pinned_hogs: dict[int, int] = field(default_factory=dict)
    hog_nice: int = 0
    hog_duty_q16: int = ONE
    quota_q16: dict[int, int] = field(default_factory=dict)
    threads: int = 1
    frequency_q16: dict[int, int] = field(default_factory=dict)
    shared_core: tuple[int, ...] = ()
    remote_memory: tuple[int, ...] = ()
    suspended_q16: dict[int, int] = field(default_factory=dict)
    suspended_period_ns: int = 400_000_000
    extra_ns: dict[int, int] = field(default_factory=dict)
    gc_ns: int = 0
    gc_every: int = 0
    gc_together: bool = False
    gc_ranks: tuple[int, ...] | None = None
    metric_every: int = 0
    metric_ns: int = 0
    poll_every_ns: int = 0
    poll_ns: int = 0
    polled_hosts: tuple[int, ...] = ()
    retry_every: int = 0
    retry_ns: int = 0
    memory_traffic_q16: dict[int, int] = field(default_factory=dict)
    first_ns: dict[int, int] = field(default_factory=dict)
    spinning: int = 0
    profiled_q16: int = ONE


@dataclass
class Flows:
    """Other jobs' traffic over the shared spine: `count` flows, `on_ns` of every `period_ns`."""

    count: int = 0
    on_ns: int = 0
    period_ns: int = 1_000_000_000


@dataclass
class Network:
    """Transports, links and what they carry.

    Attributes:
        transport: Between hosts.
        peer_access: Whether GPUs of a host reach each other directly; else through host memory.
        algorithm, protocol: Fixed by the environment; "" leaves NCCL's own choice.
        channels_q16: Channels over NCCL's own choice.
        link_q16: Bandwidth of the path of a pair of hosts over the usual, by (lower, higher) host.
        nic_q16: Bandwidth of a host's interfaces over the usual.
        latency_ns: Added one way to the path of a pair of hosts.
        loss_ppm: Packets lost in a million on the path of a pair of hosts.
        pause_storm_q16: Bandwidth left on RoCE without flow control (65536: all).
        nvlink_q16: Bandwidth of a rank's NVLinks over nominal; 0: over PCIe instead.
        background: Other jobs' traffic.
        ethernet_mbit_per_s: What a rank's interface carries in a CPU job.
    """

    transport: Literal["ib", "roce", "socket"] = "ib"
    peer_access: bool = True
    algorithm: Literal["", "Ring", "Tree"] = ""
    protocol: Literal["", "LL", "LL128", "Simple"] = ""
    channels_q16: int = ONE
    link_q16: dict[tuple[int, int], int] = field(default_factory=dict)
    nic_q16: dict[int, int] = field(default_factory=dict)
    latency_ns: dict[tuple[int, int], int] = field(default_factory=dict)
    loss_ppm: dict[tuple[int, int], int] = field(default_factory=dict)
    pause_storm_q16: int = ONE
    nvlink_q16: dict[int, int] = field(default_factory=dict)
    background: Flows = field(default_factory=Flows)


@dataclass
class Gpus:
    """The devices.

    Attributes:
        silicon_q16: Speed of a rank's GPU over nominal, beside the natural spread of all.
        inlet_c: Air that a rank's GPU is cooled with (25 is ordinary).
        resistance_mc_per_w: Heat path of a rank's GPU in 1/1000 degree a watt (60 is ordinary).
        power_limit_w: A limit below the board's own.
        pcie_q16: Bandwidth of a rank's PCIe link over nominal, with `pcie_generation` and
            `pcie_width` as NVML then reports them.
        neighbours: Foreign processes that compute on a rank's GPU.
        device_of: Ranks that were given another rank's GPU (rank -> rank whose GPU it is).
        overlap_q16: How much longer computation takes while a collective runs.
        contention_q16: How much longer a collective takes while computation runs.
        spill_q16: Share of memory traffic that goes to host memory instead.
        memory_used_q16: Share of device memory in use.
        stuck: Columns of the table `gpu` that stay at zero for a rank's device.
    """

    silicon_q16: dict[int, int] = field(default_factory=dict)
    inlet_c: dict[int, int] = field(default_factory=dict)
    resistance_mc_per_w: dict[int, int] = field(default_factory=dict)
    power_limit_w: dict[int, int] = field(default_factory=dict)
    pcie_q16: dict[int, int] = field(default_factory=dict)
    pcie_generation: dict[int, int] = field(default_factory=dict)
    pcie_width: dict[int, int] = field(default_factory=dict)
    neighbours: dict[int, int] = field(default_factory=dict)
    device_of: dict[int, int] = field(default_factory=dict)
    overlap_q16: int = 12452  # 19 %
    contention_q16: int = 6554  # 10 %
    spill_q16: int = 0
    memory_used_q16: int = 45875
    stuck: dict[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class Serving:
    """The inference engine and its load.

    Attributes:
        engines: Engines that a router shares the requests out to.
        requests_per_s_q16: Arrivals at all engines together.
        prompt_tokens, answer_tokens: Mean lengths.
        long_prompt_q16: Share of prompts that are `long_prompt_tokens` long.
        prefix_share_q16: Share of a prompt that its tenant's other prompts begin with.
        tenants: Applications with a prefix of their own.
        sticky: Whether the router sends a tenant's requests to the engine that knows its prefix.
        kv_blocks: Blocks of 16 tokens an engine; 0: what device memory holds.
        max_running: Requests of a batch at most.
        chunk_tokens: Prompt tokens of a step at most; 0: whole prompts.
        prefix_cache: Whether blocks of finished requests are found again.
        kv_cache: Whether keys and values are kept at all.
        scheduler_ns: Host time of a step; `per_request_ns` more for each running request.
        structured_q16: Share of requests with a grammar, each `grammar_ns` a token on the host.
        draft_tokens: Tokens drafted a step by speculative decoding (0: off).
        acceptance_q16: Chance that a drafted token is accepted.
        draft_cost_q16: A draft pass over a decode pass of the model.
        disaggregated: Whether prefill and decode run in two pools, with the keys and values sent
            between them at `transfer_bytes_per_s`.
        tokens_per_step: What counts as a step of the job: so many tokens generated by all engines
            together. A recording is as many of them as the job has steps.
        concurrency: Requests that clients have open at a time at most; 0: no bound.
        scattered_q16: Share of requests that a sticky router sends by load all the same.
        unchunked_q16: Share of prompts that are computed whole although prompts are cut.
        uncached_q16: Share of requests whose keys and values are not kept.
        unindexed_q16: Share of requests with a grammar for which each token needs `scan_ns` more,
            since the vocabulary is searched anew.
        reserve_answers: Whether admission books the blocks of the whole answer, so that nothing
            is ever evicted.
        watermark_q16: Share of the blocks that admission leaves free.
    """

    engines: int = 1
    requests_per_s_q16: int = 8 * ONE
    prompt_tokens: int = 512
    answer_tokens: int = 128
    long_prompt_q16: int = 0
    long_prompt_tokens: int = 8192
    prefix_share_q16: int = ONE // 2
    tenants: int = 8
    sticky: bool = True
    kv_blocks: int = 0
    max_running: int = 128
    chunk_tokens: int = 2048
    prefix_cache: bool = True
    kv_cache: bool = True
    scheduler_ns: int = 800_000
    per_request_ns: int = 15_000
    structured_q16: int = ONE // 8
    grammar_ns: int = 50_000
    draft_tokens: int = 0
    acceptance_q16: int = 45875
    draft_cost_q16: int = 6554
    disaggregated: bool = False
    transfer_bytes_per_s: int = 25 * 10**9
    tokens_per_step: int = 400
    concurrency: int = 48
    scattered_q16: int = 0
    unchunked_q16: int = 0
    uncached_q16: int = 0
    unindexed_q16: int = 0
    scan_ns: int = 2_000_000
    reserve_answers: bool = False
    watermark_q16: int = ONE // 100


@dataclass
class Job:
    """A whole job: its workload, where it runs, and every mechanism that a fault can edit.

    `twin` is what the job was told if it is one that could run for real.
    `versions` are those that its log and traces name, where anything was said of them.
    """

    workload: Workload
    machine: Machine
    places: Places
    seed: int
    steps: int
    profiled_steps: int
    framework: Framework = field(default_factory=Framework)
    routing: Routing = field(default_factory=Routing)
    loader: Loader = field(default_factory=Loader)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    compiler: Compiler = field(default_factory=Compiler)
    host: Host = field(default_factory=Host)
    network: Network = field(default_factory=Network)
    gpus: Gpus = field(default_factory=Gpus)
    serving: Serving = field(default_factory=Serving)
    versions: dict[str, str] = field(default_factory=dict)
    twin: Twin | None = None
