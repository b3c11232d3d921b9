"""Holding a rank's CUDA memory to what a knob leaves above its peak."""

from __future__ import annotations

import math
from typing import Any

from injectors.recorder.knobs import Knobs


class MemoryLimit:
    """Obeys the knob `memory_headroom`; nothing to limit where the device is no GPU."""

    def __init__(self, knobs: Knobs, device: Any) -> None:
        self._knobs, self._device = knobs, device
        self._headroom = math.inf

    def obey(self) -> None:
        """Set or lift the limit if the knob was turned since the last call."""
        headroom = self._knobs["memory_headroom"]
        if self._device.type != "cuda" or headroom == self._headroom:
            return
        import torch

        self._headroom = headroom
        torch.cuda.empty_cache()
        _, total = torch.cuda.mem_get_info(self._device)
        peak = torch.cuda.max_memory_allocated(self._device)
        torch.cuda.set_per_process_memory_fraction(fraction(peak, headroom, total), self._device)


def fraction(peak: int, headroom: float, total: int) -> float:
    """Return the share of `total` bytes that leaves `headroom` (a share of it) above `peak`.

    >>> fraction(peak=40, headroom=0.25, total=100)
    0.5
    >>> fraction(peak=40, headroom=math.inf, total=100)
    1.0
    """
    return min(1.0, peak * (1 + headroom) / total)
