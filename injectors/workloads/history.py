"""What a training loop remembers of its last micro-batches."""

from __future__ import annotations

import gc
from collections import deque
from typing import Any

from injectors.recorder.knobs import Knobs

KEPT = 4  # micro-batches; long enough that records reach the collector's oldest generation


class History:
    """Records that refer to their list and are referred to by it, so only cyclic collection
    frees them.
    """

    def __init__(self, knobs: Knobs, rank: int) -> None:
        self._knobs, self._rank = knobs, rank
        self._kept: deque[list[Any]] = deque(maxlen=KEPT)

    def note(self) -> None:
        """Keep the records of one more micro-batch, or drop all where none are wanted."""
        own = self._rank == int(self._knobs["history_rank"])
        count = int(self._knobs["history_records"]) if own else 0
        if count:
            records: list[Any] = []
            records.extend([records] for _ in range(count))
            self._kept.append(records)
        elif self._kept:
            self._kept.clear()
            gc.collect()
