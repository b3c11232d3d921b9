"""The memory of keys and values: how many blocks are lent, and which can be found again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


class BlockPool:
    """An allocator of `blocks` blocks; only their number and their keys are kept.

    A block is empty, in use by one or more requests, or idle: nobody uses it, but it can be
    found by its key until it is needed for something else. The block idle for longest goes
    first. `watermark` blocks are left free by admission.

    >>> pool = BlockPool(blocks=3, watermark=0)
    >>> mine = pool.take(2)
    >>> pool.keep(mine, 0, key=7)
    >>> pool.release(mine), pool.in_use, pool.find([7, 8])
    (None, 0, 1)
    """

    def __init__(self, blocks: int, watermark: int) -> None:
        self.blocks, self.watermark = blocks, watermark
        self.in_use = 0
        self._users: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def usage(self) -> float:
        """Share of the blocks that requests hold."""
        return self.in_use / self.blocks

    def find(self, keys: Sequence[int]) -> int:
        """Return how many of `keys`, from the first, are held."""
        for count, key in enumerate(keys):
            if key not in self._users and key not in self._idle:
                return count
        return len(keys)

    def take(self, count: int, shared: Sequence[int] = (), leave: int = 0) -> list[int] | None:
        """Lend the blocks found under `shared` and `count` fresh ones, by their keys.

        Returns None, and lends nothing, if fewer than `leave` would then be free.
        """
        waking = sum(key in self._idle for key in shared)
        if self.in_use + waking + count + leave > self.blocks:
            return None
        for key in shared:
            self._idle.pop(key, None)
            self._users[key] = self._users.get(key, 0) + 1
        self.in_use += waking + count
        while self.in_use + len(self._idle) > self.blocks:
            self._idle.popitem(last=False)
        return [*shared, *[0] * count]

    def keep(self, held: list[int], place: int, key: int) -> None:
        """Let a block, now full, be found by its key; the first one with that key stays."""
        if key not in self._users and key not in self._idle:
            held[place] = key
            self._users[key] = 1

    def release(self, held: Sequence[int]) -> None:
        """Take blocks back; of one request's, the last are the first to go."""
        for key in reversed(held):
            if not key:
                self.in_use -= 1
                continue
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key]
                self._idle[key] = None
                self.in_use -= 1

    def warm(self, keys: Sequence[int]) -> None:
        """Put blocks there as if a request before had left them, as far as there is room."""
        for key in keys:
            if key not in self._users and key not in self._idle:
                self._idle[key] = None
        while self.in_use + len(self._idle) > self.blocks:
            self._idle.popitem(last=False)
