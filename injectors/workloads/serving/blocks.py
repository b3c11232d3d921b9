"""The memory of keys and values: blocks lent to requests, and found again by their content."""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence


def block_keys(tokens: Sequence[int], size: int, known: Sequence[bytes] = ()) -> list[bytes]:
    """Return a key for each full block of `size` tokens; `known` are the first of them.

    A key depends on the block and on all that precedes it, so equal keys mean equal prefixes.

    >>> short, long = block_keys([1, 2, 3], 2), block_keys([1, 2, 3, 4], 2)
    >>> len(short), len(long), short[0] == long[0]
    (1, 2, True)
    """
    keys = list(known)
    for number in range(len(keys), len(tokens) // size):
        content = array("q", tokens[number * size : (number + 1) * size]).tobytes()
        parent = keys[-1] if keys else b""
        keys.append(hashlib.blake2b(parent + content, digest_size=16).digest())
    return keys


class BlockPool:
    """An allocator of `blocks` blocks, of which at most `limit` may hold anything.

    A block is empty, in use by one or more requests, or idle: nobody uses it, but it can be
    found by its key until it is needed for something else. The block idle for longest goes
    first.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = self.limit = blocks
        self._empty = list(range(blocks - 1, -1, -1))
        self._idle: OrderedDict[int, None] = OrderedDict()
        self._users = [0] * blocks
        self._by_key: dict[bytes, int] = {}
        self._keys: dict[int, bytes] = {}

    @property
    def in_use(self) -> int:
        """Blocks that requests hold."""
        return self.blocks - len(self._empty) - len(self._idle)

    @property
    def usage(self) -> float:
        """Share of the usable blocks that requests hold."""
        return self.in_use / self.limit

    def restrict(self, limit: int) -> None:
        """Let at most `limit` blocks hold anything; what is in use already stays."""
        self.limit = min(limit, self.blocks)
        while self._idle and self.in_use + len(self._idle) > self.limit:
            self._empty.append(self._evict())

    def find(self, keys: Sequence[bytes]) -> list[int]:
        """Return the blocks of the longest run of `keys`, from the first, that are held."""
        found: list[int] = []
        for key in keys:
            if key not in self._by_key:
                break
            found.append(self._by_key[key])
        return found

    def take(self, count: int, shared: Sequence[int] = ()) -> list[int] | None:
        """Lend the found blocks `shared` and `count` fresh ones, or nothing if that is too many."""
        waking = sum(not self._users[block] for block in shared)
        if self.in_use + waking + count > self.limit:
            return None
        for block in shared:
            self._idle.pop(block, None)
            self._users[block] += 1
        return [*shared, *(self._fresh() for _ in range(count))]

    def _fresh(self) -> int:
        full = self.in_use + len(self._idle) >= self.limit
        block = self._evict() if full else self._empty.pop()
        self._users[block] = 1
        return block

    def _evict(self) -> int:
        block, _ = self._idle.popitem(last=False)
        del self._by_key[self._keys.pop(block)]
        return block

    def keep(self, block: int, key: bytes) -> None:
        """Let a block, now full, be found by its key; the first one with that key stays."""
        if block not in self._keys and key not in self._by_key:
            self._keys[block], self._by_key[key] = key, block

    def release(self, blocks: Sequence[int]) -> None:
        """Take blocks back; of one request's, the last are the first to go."""
        for block in reversed(blocks):
            self._users[block] -= 1
            if self._users[block]:
                continue
            if block in self._keys:
                self._idle[block] = None
            else:
                self._empty.append(block)
