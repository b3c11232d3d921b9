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
    if not _is_bare(packed):
        raise BundleError("must be gzip without name, date or comment", where=path)
    return bytes_digest(gunzip(packed, path, MAX_UNPACKED_BYTES))


def write_trace(path: Path, packed: bytes, quick: bool = False) -> None:
    """Write a gzip-compressed trace again, without the file name and date that gzip keeps.

    Quickly it is written as it is, where it holds neither.
    """
    if not (quick and _is_bare(packed)):
        content = gunzip(packed, path, MAX_UNPACKED_BYTES)
        packed = gzip.compress(content, compresslevel=9, mtime=0)
    write_bytes(path, packed)


def _is_bare(packed: bytes) -> bool:
    """Whether no name, date or comment stands in the header."""
    return packed[3:8] == bytes(5)
