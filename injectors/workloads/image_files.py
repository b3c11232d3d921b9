"""A data set of real image files: zlib-compressed 8-bit RGB, written once per job."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler, get_worker_info

from injectors.workloads.storage import Storage

if TYPE_CHECKING:
    from injectors.recorder.knobs import Knobs

INFO = ("start_ns", "fetch_ns", "read_ns", "cpu_ns", "read_bytes", "worker")


def write_images(folder: Path, count: int, pixels: int, seed: int) -> None:
    """Write `count` images of `pixels` x `pixels`, smooth enough to compress like photos."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    for number in range(count):
        coarse = random.integers(0, 256, (pixels // 8, pixels // 8, 3), dtype=np.uint8)
        image = np.kron(coarse, np.ones((8, 8, 1), np.uint8))
        image += random.integers(0, 8, image.shape, dtype=np.uint8)
        (folder / f"{number:05d}.img").write_bytes(zlib.compress(image.tobytes(), 3))


class ImageFiles(Dataset[Any]):
    """Reads, decompresses and augments; fetches a whole batch at once and times it."""

    def __init__(self, folder: Path, count: int, pixels: int, passes: int, knobs: Knobs) -> None:
        self._storage = Storage(folder, knobs)
        self._count, self._pixels, self._passes, self._knobs = count, pixels, passes, knobs

    def __len__(self) -> int:
        return self._count

    def __getitems__(self, indices: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
        """Return images (batch, 3, pixels, pixels), labels, and the timings named in INFO."""
        start_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        contents = [self._storage.read(f"{index:05d}.img") for index in indices]
        read_ns = time.monotonic_ns() - start_ns
        images = torch.stack([self._decode(content) for content in contents])
        worker = get_worker_info()
        info = [
            start_ns,
            time.monotonic_ns() - start_ns,
            read_ns,
            time.thread_time_ns() - cpu_ns,
            sum(map(len, contents)),
            -1 if worker is None else worker.id,
        ]
        return images, torch.tensor([index % 10 for index in indices]), info

    def _decode(self, content: bytes) -> torch.Tensor:
        flat = np.frombuffer(zlib.decompress(content), np.uint8)
        image = flat.reshape(self._pixels, self._pixels, 3).astype(np.float32) / 255.0
        for _ in range(self._passes * int(self._knobs["decode_passes"])):
            image = _smooth_and_flip(image)
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))


def _smooth_and_flip(image: np.ndarray) -> np.ndarray:
    """One augmentation pass: a 3x3 blur and a mirror."""
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge")
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    blurred: np.ndarray = (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9.0
    return blurred[:, ::-1]


class EndlessBatches(Sampler[list[int]]):
    """Batches of random indices without end, so that no epoch boundary interrupts a trial."""

    def __init__(self, count: int, batch_size: int, seed: int) -> None:
        self._count, self._batch_size, self._seed = count, batch_size, seed

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng(self._seed)
        while True:
            yield random.integers(0, self._count, self._batch_size).tolist()


def keep(batch: Any) -> Any:
    """Collate nothing: the data set already returns whole batches."""
    return batch
