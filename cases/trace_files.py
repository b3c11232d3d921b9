"""Compressed traces: opened with a bound on what they unpack to, written without a date."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

from cases.digest import stream_digest
from cases.documents import write_bytes
from cases.errors import BundleError

MAX_PACKED_BYTES = 256 * 2**20
MAX_UNPACKED_BYTES = 2 * 2**30


class BoundedReader(io.RawIOBase):
    """A stream that raises BundleError once more than `limit` bytes came out of it."""

    def __init__(self, stream: gzip.GzipFile, where: Path, limit: int = MAX_UNPACKED_BYTES) -> None:
        super().__init__()
        self._stream, self._where, self._limit, self._left = stream, where, limit, limit

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into `buffer`; decoding errors become BundleError."""
        try:
            content = self._stream.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            raise BundleError(f"must be intact gzip ({error})", where=self._where) from None
        self._left -= len(content)
        if self._left < 0:
            raise BundleError(f"must unpack to at most {self._limit} bytes", where=self._where)
        buffer[: len(content)] = content
        return len(content)


def trace_digest(path: Path) -> str:
    """Digest of a trace's decompressed bytes."""
    size = path.stat().st_size
    if size > MAX_PACKED_BYTES:
        raise BundleError(f"must be at most {MAX_PACKED_BYTES} bytes", where=path, found=size)
    with gzip.open(path) as stream:
        return stream_digest(io.BufferedReader(BoundedReader(stream, path), 2**20))


def write_trace(path: Path, packed: bytes) -> None:
    """Write a gzip-compressed trace again, without the name and date that gzip keeps."""
    try:
        content = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise BundleError(f"must be intact gzip ({error})", where=path) from None
    write_bytes(path, gzip.compress(content, compresslevel=9, mtime=0))
