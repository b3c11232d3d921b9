"""Witnesses of causes in NCCL and the network: cause -> (query, what it says)."""

from __future__ import annotations

from injectors.sim.witnesses.losses import SLOWER
from injectors.sim.witnesses.transfers import (
    ALIKE,
    DROPPED,
    FULL_QUEUES,
    GROWN,
    HOSTS,
    SOME_ONLY,
    UNEQUAL,
    UNSTEADY,
    WITH_KINDS,
)

STEADY = f"{UNSTEADY} < 1.2"


def _new_words(pattern: str) -> str:
    """Return a condition: NCCL says so, by a regular expression, and did not in the reference."""
    return f"""(
    (SELECT count(*) FROM logs WHERE regexp_matches(message, 'NCCL INFO.*{pattern}')) > 0 AND
    (SELECT count(*) FROM reference.logs
     WHERE regexp_matches(message, 'NCCL INFO.*{pattern}')) = 0)"""


SETTING = _new_words("NCCL_(ALGO|PROTO|MAX_NCHANNELS) set by environment")
OVER_SOCKETS, OVER_MEMORY = _new_words("via NET/Socket"), _new_words("via SHM")
AS_BEFORE = f"NOT {SETTING} AND NOT {OVER_SOCKETS} AND NOT {OVER_MEMORY}"
RESENT = "(SELECT 1448.0 * sum(retransmits) / sum(tx_bytes) FROM {0}network)"
ARRIVED = f"coalesce({RESENT.format('')}, 0) < 0.002 AND {DROPPED} = 0"
LINKED = "(SELECT rank, max(nvlink_tx_bytes) AS bytes FROM {0}gpu GROUP BY rank)"
UNLINKED = f"""(
    SELECT count(*) > 0 FROM {LINKED.format("")} AS now JOIN {LINKED.format("reference.")} AS was
    USING (rank) WHERE now.bytes < 0.2 * was.bytes)"""
LANES = """(
    SELECT sum(generation * width) FROM (SELECT max(pcie_generation) AS generation,
                                                max(pcie_width) AS width
                                         FROM {0}gpu GROUP BY rank))"""

TRANSPORT: dict[str, tuple[str, str]] = {
    "network_congestion": (
        f"{WITH_KINDS} SELECT {GROWN} AND {UNSTEADY} > 1.25 AND {AS_BEFORE} AND {DROPPED} = 0",
        "transfers take longer than in the reference in some steps and not in others, by the same"
        " transports and settings",
    ),
    "slow_link": (
        f"""
        {WITH_KINDS} SELECT {GROWN} AND {STEADY} AND {AS_BEFORE} AND {ARRIVED}
           AND {FULL_QUEUES} > 0
        """,
        "transfers take longer in all steps while more bytes wait in a host's send queues, with"
        " the same transports and settings and nothing lost",
    ),
    "nic_degraded": (
        f"""
        {WITH_KINDS} SELECT {GROWN} AND {STEADY} AND {AS_BEFORE} AND {ARRIVED}
           AND {HOSTS} > 2 AND {FULL_QUEUES} > 1
        """,
        "transfers take longer in all steps while more bytes wait in the send queues of a host and"
        " of the one that sends to it, with the same transports and settings and nothing lost",
    ),
    "high_latency_link": (
        f"""
        {WITH_KINDS} SELECT {GROWN} AND {STEADY} AND {AS_BEFORE} AND {ARRIVED}
           AND {FULL_QUEUES} = 0 AND {ALIKE}
        """,
        "small transfers have become longer by as much as large ones, in all steps, and no queue"
        " is fuller",
    ),
    "roce_flow_control_loss": (
        f"""
        {WITH_KINDS} SELECT {GROWN} AND {AS_BEFORE}
           AND (SELECT count(*) > 1 FROM
                (SELECT host FROM network JOIN
                 (SELECT DISTINCT rank, host FROM processes WHERE role = 'rank') USING (rank)
                 GROUP BY host HAVING 4096 * sum(tx_dropped) > 1e-3 * sum(tx_bytes)))
        """,
        "transfers take longer while the interfaces of several hosts drop packets",
    ),
    "lossy_link": (
        f"""
        {WITH_KINDS} SELECT {GROWN} AND {AS_BEFORE} AND {DROPPED} = 0
           AND {RESENT.format("")} > 0.003
           AND {RESENT.format("")} > 4 * {RESENT.format("reference.")}
        """,
        "transfers take longer while TCP sends over 0.3 % of its bytes again, at least four times"
        " the reference's share, and no interface drops packets itself",
    ),
    "nccl_transport_fallback": (
        f"{WITH_KINDS} SELECT {GROWN} AND {OVER_SOCKETS}",
        "NCCL's channels go over sockets, which they did not in the reference, and transfers take"
        " longer",
    ),
    "nccl_p2p_disabled": (
        f"{WITH_KINDS} SELECT {GROWN} AND {OVER_MEMORY} AND NOT {OVER_SOCKETS}",
        "NCCL's channels within hosts go over host memory, which they did not in the reference,"
        " and transfers take longer",
    ),
    "nccl_tuning_regression": (
        f"{WITH_KINDS} SELECT {GROWN} AND {SETTING} AND NOT {OVER_SOCKETS} AND NOT {OVER_MEMORY}",
        "NCCL was told an algorithm, a protocol or a number of channels, which it was not in the"
        " reference, and transfers take longer over the same transports",
    ),
    "nccl_sm_contention": (
        f"{WITH_KINDS} SELECT {GROWN} AND {STEADY} AND {AS_BEFORE} AND {ARRIVED} AND {SOME_ONLY}",
        "transfers that run beside computation take longer in all steps, others of the same group"
        " are as long as in the reference",
    ),
    "nvlink_degraded": (
        f"""
        {WITH_KINDS} SELECT {SLOWER} AND {AS_BEFORE}
           AND {LANES.format("")} = {LANES.format("reference.")}
           AND ({UNLINKED}
                OR {STEADY} AND {ARRIVED} AND {FULL_QUEUES} = 0
                   AND ({UNEQUAL} OR {GROWN} AND NOT {ALIKE}))
        """,
        "a device sends next to nothing over NVLink; or transfers take longer in all steps in"
        " proportion to their size, or in some groups only although nobody is late there, while no"
        " queue between hosts is fuller; settings, transports and PCIe are as in the reference",
    ),
}
