"""NCCL's own tuning constants, and what was measured of its bandwidth.

Latencies and shares are those of NCCL 2.30 (src/graph/tuning.cc) for NVLink, PCIe and InfiniBand;
what sockets and RoCE add, and the shares of PCIe and of the interfaces, are estimates. The
bandwidths of a node were held against published measurements: 460-480 GB/s of bus bandwidth on
8 x H100 with NVLS, 230-250 on 8 x A100.
"""

from __future__ import annotations

from injectors.sim.job import ONE

PROTOCOLS = ("LL", "LL128", "Simple")

# By protocol, in ns: at the start, a hop over NVLink, over PCIe and host memory, between hosts.
RING_BASE = (6_600, 14_000, 8_400)
TREE_BASE = (6_800, 14_000, 8_400)
RING_NVLINK, RING_PCIE, RING_NET = (
    (600, 1_900, 3_400),
    (1_000, 2_500, 5_700),
    (2_700, 4_000, 14_000),
)
TREE_NVLINK, TREE_PCIE, TREE_NET = (
    (600, 1_250, 4_000),
    (1_000, 2_500, 5_700),
    (5_000, 8_500, 14_000),
)
NVLS_NS = 25_000
NVLS_Q16 = 55706  # 0.85 of the links
RING_SHARE_Q16 = {"LL": 32768, "LL128": 60293, "Simple": ONE}  # 0.5, 0.92, 1
TREE_SHARE_Q16 = {"LL": 17246, "LL128": 50973, "Simple": 60293}  # 1/3.8, 7/9, 0.92
# What LL moves at most, by architecture on one node; one number between nodes.
LL_CAP = {"sm90": 141 * 10**9, "ampere": 87_700 * 10**6}
LL_CAP_HOSTS = 39 * 10**9
# What NVLink carries under NCCL over its nominal rate: 18 x 20.6 of 450, 12 x 20 of 300 GB/s.
NVLINK_Q16 = {"sm90": 54002, "ampere": 52429}
NETWORK_Q16 = 62259  # 0.95 of the interface
HOST_MEMORY_Q16 = 29491  # 0.45 of PCIe: in and out of a buffer in host memory
SOCKET_RANK_BYTES_PER_S, SOCKET_HOST_BYTES_PER_S = 3 * 10**9, 12 * 10**9
SOCKET_HOP_NS, ROCE_HOP_NS = 25_000, 1_000
PEER_NS = 1_000  # each further peer of an all-to-all
POINT_Q16 = 49152  # 0.75 of the links, one pair
