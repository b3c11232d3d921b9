"""How images lie on storage: a file each, or packed into one file of compressed chunks."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from injectors.workloads.storage import Storage

LEVEL = 3  # of zlib
PACKED, OFFSETS = "packed.bin", "packed.idx"


def make_images(count: int, pixels: int, seed: int) -> Iterator[bytes]:
    """Make images of `pixels` x `pixels`, 8-bit RGB, smooth enough to compress like photos."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        coarse = random.integers(0, 256, (pixels // 8, pixels // 8, 3), dtype=np.uint8)
        image = np.kron(coarse, np.ones((8, 8, 1), np.uint8))
        image += random.integers(0, 8, image.shape, dtype=np.uint8)
        yield image.tobytes()


def write_files(folder: Path, images: Iterator[bytes]) -> None:
    """Write a compressed file for each image."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images):
        (folder / f"{number:05d}.img").write_bytes(zlib.compress(image, LEVEL))


def write_packed(folder: Path, images: Sequence[bytes], chunk: int) -> None:
    """Write one file of compressed chunks of `chunk` images, and where each chunk begins."""
    folder.mkdir(parents=True, exist_ok=True)
    offsets = [0]
    with (folder / PACKED).open("wb") as file:
        for first in range(0, len(images), chunk):
            file.write(zlib.compress(b"".join(images[first : first + chunk]), LEVEL))
            offsets.append(file.tell())
    (folder / OFFSETS).write_bytes(np.asarray(offsets, np.int64).tobytes())


class Layout(ABC):
    """Reads images in the form in which they are stored, and unpacks them."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    @abstractmethod
    def read(self, indices: Sequence[int]) -> tuple[list[bytes], int]:
        """Return what is stored of each image, and how many bytes were read."""

    @abstractmethod
    def unpack(self, stored: bytes) -> bytes:
        """Return an image's pixels."""


class SingleFiles(Layout):
    """A file each; the decoder decompresses it."""

    def read(self, indices: Sequence[int]) -> tuple[list[bytes], int]:
        """Read the images' files."""
        contents = [self.storage.read(f"{index:05d}.img") for index in indices]
        return contents, sum(map(len, contents))

    def unpack(self, stored: bytes) -> bytes:
        """Decompress an image."""
        return zlib.decompress(stored)


class PackedFile(Layout):
    """One file of chunks; reading decompresses a chunk and keeps it until another one is needed.

    The data set's order is a mapping from index to stored place, as data set libraries keep it
    after a shuffle: a knob says which share of it leads elsewhere than to the same place.
    """

    def __init__(
        self, storage: Storage, count: int, chunk: int, image_bytes: int, seed: int
    ) -> None:
        super().__init__(storage)
        self._offsets = np.frombuffer((storage.folder / OFFSETS).read_bytes(), np.int64)
        self._count, self._chunk, self._image_bytes, self._seed = count, chunk, image_bytes, seed
        self._share, self._mapping = 0.0, np.arange(count)
        self._number, self._content = -1, b""

    def read(self, indices: Sequence[int]) -> tuple[list[bytes], int]:
        """Look each index up and read its chunk, unless it is the chunk read last."""
        images, read_bytes = [], 0
        for place in self._places(indices):
            number, place_in_chunk = divmod(place, self._chunk)
            if number != self._number:
                begin, end = self._offsets[number : number + 2].tolist()
                self._content = zlib.decompress(self.storage.read(PACKED, begin, end - begin))
                self._number, read_bytes = number, read_bytes + end - begin
            first = place_in_chunk * self._image_bytes
            images.append(self._content[first : first + self._image_bytes])
        return images, read_bytes

    def _places(self, indices: Sequence[int]) -> list[int]:
        share = self.storage.knobs["remapped_share"]
        if share != self._share:
            self._mapping, self._share = remapped(self._count, share, self._seed), share
        places: list[int] = self._mapping[list(indices)].tolist()
        return places

    def unpack(self, stored: bytes) -> bytes:
        """Return the image as it is: its chunk was decompressed."""
        return stored


def remapped(count: int, share: float, seed: int) -> np.ndarray:
    """Return a permutation of `count` indices in which about `share` of them are shuffled.

    >>> remapped(5, 0.0, seed=1).tolist()
    [0, 1, 2, 3, 4]
    >>> sorted(remapped(5, 1.0, seed=1).tolist())
    [0, 1, 2, 3, 4]
    """
    random = np.random.default_rng(seed)
    mapping = np.arange(count)
    moved = np.flatnonzero(random.random(count) < share)
    mapping[moved] = random.permutation(moved)
    return mapping
