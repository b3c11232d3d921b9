"""Rules on communication: the words of NCCL, lost packets, queues, and the shape of what grew."""

from __future__ import annotations

from harness.diagnosers.features.facts import Facts
from harness.diagnosers.rules.rule import Rule

FULL = 1.5  # times the usual bytes in a queue
RESENT = 0.003  # share of bytes sent again


def _longer(f: Facts) -> bool:
    """Transfers themselves are longer, by a good part of what steps have lost."""
    return f["job.transfer_growth"] > 1.06 and f["transfer.median"] > 0.25 * (f["slowdown"] - 1)


WORDS: tuple[Rule, ...] = (
    Rule(
        "nccl_transport_fallback",
        lambda f: f["said.over_sockets.new"] > 0,
        cites=("said.over_sockets.new", "job.transfer_growth"),
        rivals=(("slow_link", "NCCL says that it goes over sockets"),),
    ),
    Rule(
        "nccl_p2p_disabled",
        lambda f: f["said.over_host_memory.new"] > 0,
        cites=("said.over_host_memory.new", "job.transfer_growth"),
        rivals=(("nvlink_degraded", "NCCL says that it goes over host memory"),),
    ),
    Rule(
        "nccl_tuning_regression",
        lambda f: f["said.collectives_set.new"] > 0,
        cites=("said.collectives_set.new", "job.transfer_growth"),
        rivals=(("slow_link", "NCCL was told what to use"),),
    ),
)
LOSSES: tuple[Rule, ...] = (
    Rule(
        "roce_flow_control_loss",
        lambda f: f["dropped.median"] > 0.001,
        cites=("dropped.median", "resent.median"),
        rivals=(("lossy_link", "interfaces of all hosts drop packets"),),
    ),
    Rule(
        "lossy_link",
        lambda f: f["resent.max"] > RESENT,
        cites=("resent.max",),
        scope="link",
        place="resent",
        rivals=(("slow_link", "bytes are sent again"),),
    ),
)
NETWORK: tuple[Rule, ...] = (
    Rule(
        "nvlink_degraded",
        lambda f: f["nvlink.min"] < 0.3,
        cites=("nvlink.min",),
        scope="gpu",
        place="-nvlink",
        rivals=(("slow_link", "it carries little within the host"),),
    ),
    Rule(
        "network_congestion",
        lambda f: f["job.transfer_growth"] > 1.06 and f["job.transfer_unsteady.growth"] > 2,
        cites=("job.transfer_growth",),
        scope="link",
        rivals=(("slow_link", "transfers are as quick as ever in some steps"),),
    ),
    Rule(
        "nic_degraded",
        lambda f: _longer(f) and f["hosts"] > 2 and f["queue.max"] > FULL and f.full_queues > 1,
        cites=("queue.max", "job.transfer_growth"),
        scope="host",
        place="queue",
        rivals=(("slow_link", "queues before and behind the host are full"),),
    ),
    Rule(
        "slow_link",
        lambda f: _longer(f) and f.full_queues > 0,
        cites=("queue.max", "job.transfer_growth"),
        scope="link",
        place="ring:queue",
        rivals=(("network_congestion", "transfers are longer in all steps alike"),),
    ),
    Rule(
        "high_latency_link",
        lambda f: _longer(f) and f["hosts"] > 1 and f["job.grown_alike"] > 0.7,
        cites=("job.transfer_growth",),
        scope="link",
        place="queue_all",
        rivals=(("slow_link", "small transfers grew most, and no queue is fuller"),),
        sure=0.6,
    ),
    Rule(
        "nccl_sm_contention",
        lambda f: _longer(f) and f["job.kinds_most"] > 1.3,
        cites=("job.transfer_growth",),
        rivals=(("slow_link", "no queue is fuller"),),
        sure=0.6,
    ),
)  # fmt: skip
