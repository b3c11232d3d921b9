"""How much each kind of operation varies, as tables that a few bits of an op's key look up.

A factor is 65536 + normal * sigma + (exponential - 1) * tail, of mean 1, in Q16, at least 1/4.
Coefficients of variation measured on public traces of A100 and H100 jobs: large products 0.5 to
1.3 %, small kernels 1.4 % (4 to 7 % at the 90th percentile of kernels), collectives above 16 MB
0.3 to 0.4 %, below 128 KB 3 to 21 %. Launch calls have a median of 3 to 10 us and a 99th
percentile of 9 to 25 us, a kernel starts 4 to 7 us after its call on an idle stream, and between
kernels of a busy stream there are 0.75 to 1.15 us. See docs/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from injectors.sim.noise import EXPONENTIAL_Q16, NORMAL_Q16, ONE_Q16, TABLE_BITS
from injectors.sim.program import Ints, Noise

LEAST_FACTOR_Q16 = ONE_Q16 // 4
SHORT_BITS = 10  # of the fields for latency and gap

# Class -> (sigma, tail) of its factor, Q16.
CLASSES: dict[Noise, tuple[int, int]] = {
    Noise.NONE: (0, 0),
    Noise.GEMM: (590, 0),  # 0.9 %
    Noise.SMALL: (920, 1311),  # 1.4 % and a tail: 2.4 % in all
    Noise.LARGE_COLLECTIVE: (230, 0),  # 0.35 %
    Noise.SMALL_COLLECTIVE: (3277, 3932),  # 5 % and a tail: 8 % in all
    Noise.COPY: (1311, 655),  # 2 %
    Noise.INLINE: (1311, 655),  # 2 %
}
HOST = (6554, 19661)  # 10 % and a tail of 30 %: 99th percentile 2.5 times the median
LATENCY_NS, GAP_NS, SKEW_NS = (4_000, 7_000), (750, 1_150), (0, 2_000)


class Spread(NamedTuple):
    """Tables of the engine's noise, all int64 and writable.

    Attributes:
        factor_q16: (classes, 2**TABLE_BITS), multiplies a device op's or a transfer's time.
        host_q16: (2**TABLE_BITS,), multiplies host and launch times.
        latency_ns: (2**SHORT_BITS,), from a launch call to the start on an idle stream.
        gap_ns: (2**SHORT_BITS,), between two kernels of a stream.
        skew_ns: (2**TABLE_BITS,), by how much members of a collective end apart.
    """

    factor_q16: Ints
    host_q16: Ints
    latency_ns: Ints
    gap_ns: Ints
    skew_ns: Ints


def ordinary() -> Spread:
    """Return the spread of real jobs."""
    return Spread(
        factor_q16=np.stack([_factors(*CLASSES[kind]) for kind in Noise]),
        host_q16=_factors(*HOST),
        latency_ns=_evenly(LATENCY_NS, SHORT_BITS),
        gap_ns=_evenly(GAP_NS, SHORT_BITS),
        skew_ns=_evenly(SKEW_NS, TABLE_BITS),
    )


def constant(latency_ns: int = 5_000, gap_ns: int = 1_000, skew_ns: int = 0) -> Spread:
    """Return no spread at all, for numbers that can be worked out by hand."""
    long, short = 2**TABLE_BITS, 2**SHORT_BITS
    return Spread(
        factor_q16=np.full((len(Noise), long), ONE_Q16, np.int64),
        host_q16=np.full(long, ONE_Q16, np.int64),
        latency_ns=np.full(short, latency_ns, np.int64),
        gap_ns=np.full(short, gap_ns, np.int64),
        skew_ns=np.full(long, skew_ns, np.int64),
    )


def _factors(sigma_q16: int, tail_q16: int) -> Ints:
    spread = NORMAL_Q16 * sigma_q16 + (EXPONENTIAL_Q16 - ONE_Q16) * tail_q16
    return np.asarray(np.maximum(ONE_Q16 + (spread >> 16), LEAST_FACTOR_Q16))


def _evenly(bounds: tuple[int, int], bits: int) -> Ints:
    low, high = bounds
    return low + (np.arange(2**bits, dtype=np.int64) * (high - low + 1) >> bits)
