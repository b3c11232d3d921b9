"""Randomness of the simulator: table look-ups keyed by seed and names, never drawn in sequence.

A draw depends on its key alone, so switching a fault off changes no other draw, and the order of
computation changes nothing. All is integer arithmetic modulo 2**64 and Q16 fixed point, the same
bits on every machine, in Python, numpy and numba:

    key(seed, a, b) = extend(extend(mix(seed + GAMMA), a), b)
    extend(k, a)    = mix((k + GAMMA) ^ a)              a text counts as its FNV-1a hash
    mix(z)          : z ^= z >> 30; z *= MIX_1; z ^= z >> 27; z *= MIX_2; z ^= z >> 31
    table entry     : TABLE[k >> (64 - TABLE_BITS)]

mix and GAMMA are those of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). One key gives one
draw: extend it by a name for each further one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from injectors.sim.noise_tables import TABLE_BITS, read_tables

__all__ = [
    "EXPONENTIAL_Q16",
    "NORMAL_Q16",
    "ONE_Q16",
    "TABLE_BITS",
    "Ints",
    "Keys",
    "below",
    "choice",
    "exponential_q16",
    "extend",
    "factor_q16",
    "key",
    "keys",
    "mix64",
    "normal_q16",
    "permutation",
    "scale_q16",
    "text_hash",
    "uniform_q16",
]

Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]
NORMAL_Q16, EXPONENTIAL_Q16 = read_tables()
ONE_Q16 = 2**16
LEAST_FACTOR_Q16 = ONE_Q16 // 8
MASK = 2**64 - 1
GAMMA, MIX_1, MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


@lru_cache(maxsize=4096)
def text_hash(text: str) -> int:
    """Hash a text's UTF-8 bytes by 64-bit FNV-1a.

    >>> hex(text_hash("a"))
    '0xaf63dc4c8601ec8c'
    """
    value = FNV_OFFSET
    for byte in text.encode("utf-8"):
        value = (value ^ byte) * FNV_PRIME & MASK
    return value


def mix64(z: int) -> int:
    """Mix 64 bits (SplitMix64's output function); `z` is taken modulo 2**64."""
    z &= MASK
    z = (z ^ z >> 30) * MIX_1 & MASK
    z = (z ^ z >> 27) * MIX_2 & MASK
    return z ^ z >> 31


def key(seed: int, *parts: int | str) -> int:
    """Return the key, 0 to 2**64 - 1, of what `parts` name under `seed`; their order counts."""
    found = mix64(seed + GAMMA)
    for part in parts:
        found = mix64((found + GAMMA) ^ (_number(part) & MASK))
    return found


def keys(seed: int, *parts: int | str | Ints) -> Keys:
    """Return `key(seed, *parts)` elementwise; arrays among the parts are broadcast (>= 1-d)."""
    return extend(mix64(seed + GAMMA), *parts)


def extend(base: int | Keys, *parts: int | str | Ints) -> Keys:
    """Extend each key by `parts`, elementwise as `key` does; the result has at least one axis.

    >>> int(extend(key(7, "rank"), np.arange(4))[3]) == key(7, "rank", 3)
    True
    """
    found = np.atleast_1d(np.asarray(base, dtype=np.uint64))
    for part in parts:
        word = (
            part.astype(np.uint64)
            if isinstance(part, np.ndarray)
            else np.uint64(_number(part) & MASK)
        )
        found = _mix_array((found + np.uint64(GAMMA)) ^ np.atleast_1d(word))
    return found


def uniform_q16(of: Keys) -> Ints:
    """Draw from 0 to 65535, each as likely."""
    return (of >> np.uint64(48)).astype(np.int64)


def below(of: Keys, count: int) -> Ints:
    """Draw whole numbers from 0 to `count` - 1 (1 <= count <= 2**32), each as likely."""
    if not 1 <= count <= 2**32:
        raise ValueError(f"count must be 1 to 2**32, got {count}")
    return ((of >> np.uint64(32)) * np.uint64(count) >> np.uint64(32)).astype(np.int64)


def normal_q16(of: Keys, sigma_q16: int | Ints = ONE_Q16) -> Ints:
    """Draw from a normal distribution of mean 0 and deviation `sigma_q16`, at most 3.5 of them."""
    return scale_q16(NORMAL_Q16[_index(of)], sigma_q16)


def exponential_q16(of: Keys, mean_q16: int | Ints = ONE_Q16) -> Ints:
    """Draw from an exponential distribution of mean `mean_q16`, at most 8.4 times the mean."""
    return scale_q16(EXPONENTIAL_Q16[_index(of)], mean_q16)


def factor_q16(of: Keys, sigma_q16: int | Ints) -> Ints:
    """Draw factors of mean 1 and deviation `sigma_q16`, never below 1/8."""
    return np.maximum(ONE_Q16 + normal_q16(of, sigma_q16), LEAST_FACTOR_Q16)


def scale_q16(values: int | Ints, factor_q16: int | Ints) -> Ints:
    """Multiply by a Q16 factor, rounded half up; |values * factor_q16| must stay below 2**63."""
    return np.asarray((np.asarray(values, dtype=np.int64) * factor_q16 + ONE_Q16 // 2) >> 16)


def choice(of: Keys, weights: Sequence[int]) -> Ints:
    """Draw indices into `weights` (whole numbers >= 0, their sum 1 to 2**32), as likely as they."""
    ends = np.cumsum(np.asarray(weights, dtype=np.int64))
    if min(weights) < 0:
        raise ValueError(f"weights must not be negative, got {list(weights)}")
    return np.searchsorted(ends, below(of, int(ends[-1])), side="right").astype(np.int64)


def permutation(of: int, count: int) -> Ints:
    """Return 0 to `count` - 1 in an order drawn by the key `of`."""
    return np.argsort(extend(of, np.arange(count)), kind="stable").astype(np.int64)


def _index(of: Keys) -> NDArray[np.int64]:
    return (of >> np.uint64(64 - TABLE_BITS)).astype(np.int64)


def _number(part: int | str) -> int:
    return text_hash(part) if isinstance(part, str) else part


def _mix_array(z: Keys) -> Keys:
    """`mix64` of each element; at least one axis, since numpy warns of overflowing scalars."""
    z = (z ^ z >> np.uint64(30)) * np.uint64(MIX_1)
    z = (z ^ z >> np.uint64(27)) * np.uint64(MIX_2)
    return z ^ z >> np.uint64(31)
