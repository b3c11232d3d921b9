"""What NCCL says at a job's start: networks, settings, and the way of rank 0's channels.

As in recordings the lines carry no process, host or address, and of the channels the first of each
way is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from injectors.sim.job import ONE, Job

USUAL_CHANNELS = 24
PREFIX = "NCCL INFO"
NETWORKS = {"ib": ("IB", "NET/IB/0/GDRDMA"), "roce": ("IB", "NET/IB/0/GDRDMA")}
SOCKETS = ("Socket", "NET/Socket/0")


def nccl_lines(job: Job) -> Iterator[str]:
    """Yield the lines of rank 0; none where ranks compute on CPUs or one is alone."""
    if job.machine.gpu is None or job.places.ranks < 2:
        return
    if "nccl" in job.versions:
        yield f"NCCL version {job.versions['nccl']}+cuda{job.versions.get('cuda', '12')}"
    for line in (*_settings(job), *_networks(job), *_channels(job)):
        yield f"{PREFIX} {line}"


def _settings(job: Job) -> Iterator[str]:
    network = job.network
    yield "NCCL_SOCKET_IFNAME set by environment to eth0"
    channels = (USUAL_CHANNELS * network.channels_q16 + ONE // 2) >> 16
    for name, value in (
        ("NCCL_ALGO", network.algorithm),
        ("NCCL_PROTO", network.protocol),
        ("NCCL_MAX_NCHANNELS", str(channels) if network.channels_q16 != ONE else ""),
    ):
        if value:
            yield f"{name} set by environment to {value}"


def _networks(job: Job) -> Iterator[str]:
    yield "Bootstrap: Using eth0:<0>"
    transport = job.network.transport
    if transport == "socket":
        yield "NET/IB : No device found."
        yield "NET/Socket : Using [0]eth0:<0>"
    else:
        link = "IB" if transport == "ib" else "RoCE"
        ports = " ".join(f"[{i}]mlx5_{i}:1/{link}" for i in range(job.places.per_host))
        yield f"NET/IB : Using {ports} [RO]; OOB eth0:<0>"
    yield f"Using network {NETWORKS.get(transport, SOCKETS)[0]}"


def _channels(job: Job) -> Iterator[str]:
    """A ring goes through a host's ranks, then to the next host, from the last one to the first."""
    places = job.places
    here, last = min(places.per_host, places.ranks), places.ranks - 1
    if here > 1:
        way = "P2P/CUMEM" if job.network.peer_access else "SHM/direct/direct"
        yield f"Channel 00/0 : 0[0] -> 1[1] via {way}"
    if places.hosts > 1:
        way = NETWORKS.get(job.network.transport, SOCKETS)[1]
        yield f"Channel 00/0 : {last}[{last % places.per_host}] -> 0[0] [receive] via {way}"
