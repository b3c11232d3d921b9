"""The storage that a workload's files lie on: real files behind a shared bandwidth."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from injectors.recorder.knobs import STORAGE_FREE_AT, Knobs


class Storage:
    """Reads real files; all readers of a job share one bandwidth, as on a network mount.

    Each read books the device for bytes / bandwidth seconds after the bookings before it and
    sleeps until its own booking ends. With infinite bandwidth nothing is added.

    Attributes:
        folder: Where the files are.
        latency_s: How long each read of this reader waits before it begins.
    """

    def __init__(self, folder: Path, knobs: Knobs) -> None:
        self.folder, self.knobs = folder, knobs
        self._lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        self.latency_s = 0.0

    def read(self, name: str, offset: int = 0, size: int = -1) -> bytes:
        """Return bytes of one file, all by default, as fast as the storage delivers them."""
        if self.latency_s:
            time.sleep(self.latency_s)
        with (self.folder / name).open("rb", buffering=0) as file:
            file.seek(offset)
            content: bytes = file.read(size)
        bandwidth = self.knobs["storage_bytes_per_s"]
        if bandwidth != float("inf"):
            self._wait_for(len(content) / bandwidth)
        return content

    def _wait_for(self, seconds: float) -> None:
        fcntl.lockf(self._lock, fcntl.LOCK_EX)  # per process: freed even when a reader dies
        try:
            begin = max(time.monotonic(), self.knobs.slot(STORAGE_FREE_AT))
            self.knobs.set_slot(STORAGE_FREE_AT, begin + seconds)
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)
        time.sleep(max(0.0, begin + seconds - time.monotonic()))
