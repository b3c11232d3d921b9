"""The table `network`: each rank's interface, sampled.

Sockets hand the kernel more than the path takes, so that their queue is full for as long as a
transfer is under way; InfiniBand's queue holds what has been posted. Of a ring only those who send
into its slowest path have a full queue, others wait for what they are to pass on.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from injectors.sim import noise
from injectors.sim.job import ONE, Job
from injectors.sim.noise import Ints
from injectors.sim.run import Run
from injectors.sim.spine import Spine
from injectors.sim.tables.activity import Activity
from injectors.sim.tables.interfaces import foreign_bytes_per_s, loss_ppm
from injectors.sim.tables.sampling import Samples, growth, reader
from injectors.sim.tables.sending import sending_share_q16
from injectors.sim.transfers import PACKET_BYTES, SEGMENT_BYTES

HEADER_Q16 = 66847  # 1.02: headers of packets
SOCKET_QUEUE_BYTES, VERBS_QUEUE_BYTES = 4 * 2**20, 512 * 2**10
STRAY_Q16 = 2621  # 4 % of the samples see a packet or two sent again, whatever the network
CROWDED_PPM = 400  # lost where the job gets next to nothing of a shared link
RESENT_PACKETS = 32  # behind one that InfiniBand or RoCE lost


def network_table(run: Run, samples: Samples, done: Activity) -> pd.DataFrame:
    """Return the rows, one a rank and sample, from the second sample on."""
    host = done.clocks.host
    times, before = samples.true_ns[host], samples.before()[host]
    there = samples.taken[host] & (before >= 0)
    at = reader(run.marks["end"], times)
    sent = growth(at.read(done.traffic.nic_tx), before) * HEADER_Q16 >> 16
    foreign = foreign_bytes_per_s(run.job)[:, None] * (times // 1000) // 10**6
    received = growth(at.read(done.traffic.nic_rx), before) * HEADER_Q16 >> 16
    again, dropped = _lost(run.job, sent, at.level(_crowded_ppm(run)))
    columns = {
        "tx_bytes": sent + again * _packet(run.job) + growth(foreign, before),
        "rx_bytes": received,
        "tx_dropped": dropped,
        "retransmits": again,
        "send_queue_bytes": _queue(run, done, times),
    }
    return pd.DataFrame(
        {
            "rank": np.nonzero(there)[0],
            "time_ns": samples.clock_ns[host][there],
            **{name: values[there] for name, values in columns.items()},
        }
    )


def _by_sockets(job: Job) -> bool:
    return job.machine.gpu is None or job.network.transport == "socket"


def _packet(job: Job) -> int:
    return SEGMENT_BYTES if _by_sockets(job) else PACKET_BYTES


def _crowded_ppm(run: Run) -> Ints:
    """Packets in a million that Ethernet drops where others share the spine, (steps, ranks)."""
    job, ends = run.job, run.marks["end"]
    found = np.zeros(ends.shape, np.int64)
    if job.network.transport != "ib" and job.network.background.count:
        spine = Spine(job.network.background, job.machine.nic_bytes_per_s, job.seed)
        begins = (ends - run.step_ns).min(axis=1)
        for step, (begin, end) in enumerate(zip(begins.tolist(), ends.max(axis=1), strict=True)):
            left = ONE - spine.share_q16(begin, int(end))
            found[step] = CROWDED_PPM * left >> 16
    return found


def _lost(job: Job, sent: Ints, crowded_ppm: Ints) -> tuple[Ints, Ints]:
    """Return packets that were sent again, and those that an interface dropped itself."""
    ranks, numbers = np.arange(sent.shape[0])[:, None], np.arange(sent.shape[1])
    of = noise.keys(job.seed, "packets", ranks, numbers)
    packets = sent // _packet(job)
    spread = noise.factor_q16(noise.extend(of, "lost"), ONE // 8)
    ppm = loss_ppm(job)[:, None] + crowded_ppm
    again = noise.scale_q16(packets * ppm // 10**6, spread)
    stray = noise.uniform_q16(of) < STRAY_Q16
    again += stray * (1 + noise.below(noise.extend(of, "stray"), 2)) * (packets > 0)
    storm = ONE - job.network.pause_storm_q16 if job.network.transport == "roce" else 0
    # Each packet that is dropped makes the sender repeat those behind it.
    dropped = noise.scale_q16(packets * storm // (ONE * 100), spread)
    return again + dropped * RESENT_PACKETS, dropped


def _queue(run: Run, done: Activity, times: Ints) -> Ints:
    """Bytes that wait at the moment of a sample, (ranks, samples)."""
    ranks, numbers = np.arange(times.shape[0])[:, None], np.arange(times.shape[1])
    of = noise.keys(run.job.seed, "send queue", ranks, numbers)
    whole = SOCKET_QUEUE_BYTES if _by_sockets(run.job) else VERBS_QUEUE_BYTES
    part = noise.uniform_q16(of) * 3 // 8 + ONE * 5 // 8
    full = whole * part >> 16
    return full * sending_share_q16(run, done.traffic, times) >> 16
