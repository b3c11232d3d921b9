"""The table `network` of a server with two pools: keys and values on the engines' interfaces.

The ranks of an engine send and receive their own part of each transfer, all at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from injectors.sim import noise
from injectors.sim.job import ONE, Job
from injectors.sim.program import Ints
from injectors.sim.serving.transfers import Transfer
from injectors.sim.tables.network import HEADER_Q16, STRAY_Q16, VERBS_QUEUE_BYTES
from injectors.sim.tables.sampling import Samples, growth
from injectors.sim.transfers import PACKET_BYTES


def network_table(
    job: Job, transfers: Sequence[Transfer], samples: Sequence[Samples], begin_ns: int
) -> pd.DataFrame:
    """Return the rows, one a rank and sample, from the second sample on.

    Args:
        job: The whole job.
        transfers: All of them.
        samples: Of each engine's host, in time since `begin_ns`.
        begin_ns: When the recording began.
    """
    frames = [_rows(job, engine, transfers, own, begin_ns) for engine, own in enumerate(samples)]
    return pd.concat(frames, ignore_index=True)


def _rows(
    job: Job, engine: int, transfers: Sequence[Transfer], samples: Samples, begin_ns: int
) -> pd.DataFrame:
    tensor, times = job.places.tensor, samples.true_ns[0]
    before, at = samples.before(), times + begin_ns
    there = (samples.taken & (before >= 0))[0]
    sending = [t for t in transfers if t.source == engine]
    sent = growth(_moved(sending, at, tensor)[None], before)[0]
    received = growth(
        _moved((t for t in transfers if t.target == engine), at, tensor)[None], before
    )
    lost = growth(_moved(sending, at, tensor, job.network.loss_ppm)[None], before)[0]
    frames = []
    for lane in range(tensor):
        rank = engine * tensor + lane
        again = _again(job, rank, lost, sent)
        frame = {
            "tx_bytes": (sent * HEADER_Q16 >> 16) + again * PACKET_BYTES,
            "rx_bytes": received[0] * HEADER_Q16 >> 16,
            "tx_dropped": np.zeros_like(sent),
            "retransmits": again,
            "send_queue_bytes": _queue(job, rank, sending, at),
        }
        rows = {name: values[there] for name, values in frame.items()}
        frames.append(pd.DataFrame({"rank": rank, "time_ns": samples.clock_ns[0][there], **rows}))
    return pd.concat(frames, ignore_index=True)


def _moved(
    transfers: Iterable[Transfer],
    at_ns: Ints,
    tensor: int,
    ppm: dict[tuple[int, int], int] | None = None,
) -> Ints:
    """Bytes that a rank has moved by given times; with `ppm` those lost, in millionths."""
    total = np.zeros_like(at_ns)
    for one in transfers:
        share = 1
        if ppm is not None:
            share = ppm.get((min(one.source, one.target), max(one.source, one.target)), 0)
        length = max(one.end_ns - one.start_ns, 1)
        over = np.clip(at_ns - one.start_ns, 0, length)
        total += one.bytes // tensor * (over * ONE // length) // ONE * share
    return total


def _again(job: Job, rank: int, lost: Ints, sent: Ints) -> Ints:
    """Packets sent again: those that were lost, and a stray one now and then."""
    numbers = np.arange(len(sent))
    of = noise.keys(job.seed, "packets", rank, numbers)
    spread = noise.factor_q16(noise.extend(of, "lost"), ONE // 8)
    stray = noise.uniform_q16(of) < STRAY_Q16
    again = noise.scale_q16(lost // PACKET_BYTES // 10**6, spread)
    return again + stray * (1 + noise.below(noise.extend(of, "stray"), 2)) * (sent > 0)


def _queue(job: Job, rank: int, sending: Iterable[Transfer], at_ns: Ints) -> Ints:
    """Bytes posted but not yet sent: some while a transfer is under way, full on a slow path."""
    busy = np.zeros_like(at_ns)
    for one in sending:
        pair = min(one.source, one.target), max(one.source, one.target)
        slow = min(
            job.network.link_q16.get(pair, ONE),
            job.network.nic_q16.get(one.source, ONE),
            job.network.nic_q16.get(one.target, ONE),
        )
        under_way = (one.start_ns <= at_ns) & (at_ns < one.end_ns)
        busy = np.maximum(busy, under_way * (ONE if slow < ONE else ONE // 2))
    of = noise.keys(job.seed, "send queue", rank, np.arange(len(at_ns)))
    part = noise.uniform_q16(of) * 3 // 8 + ONE * 5 // 8
    return np.asarray((VERBS_QUEUE_BYTES * part >> 16) * busy >> 16)
