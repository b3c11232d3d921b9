"""Compressed traces as files: identified by what they unpack to, written without a date."""

from __future__ import annotations

import gzip
from pathlib import Path

from cases.digest import bytes_digest
from cases.documents import write_bytes
from cases.errors import BundleError
from cases.kineto.compressed import gunzip

MAX_UNPACKED_BYTES = 2**30


def trace_digest(path: Path) -> str:
    """Digest of a trace's decompressed bytes.

    Raises:
        TraceError: the file is damaged.
        BundleError: its header holds a name, date or comment, which no digest covers.
    """
    packed = path.read_bytes()
    if packed[3:8] != bytes(5):
        raise BundleError("must be gzip without name, date or comment", where=path)
    return bytes_digest(gunzip(packed, path, MAX_UNPACKED_BYTES))


def write_trace(path: Path, packed: bytes) -> None:
    """Write a gzip-compressed trace again, without the file name and date that gzip keeps."""
    content = gunzip(packed, path, MAX_UNPACKED_BYTES)
    write_bytes(path, gzip.compress(content, compresslevel=9, mtime=0))
