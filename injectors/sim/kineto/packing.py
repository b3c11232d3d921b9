"""Gzip, fast, without the date and name that it may hold: what counts is what it unpacks to."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

LEVEL = 1
HEADER = b"\x1f\x8b\x08"
GZIP_WBITS = 31  # zlib's number for "a gzip header and trailer around the data"


try:
    from isal import isal_zlib

    DEFLATE: Any = isal_zlib.compressobj
except ImportError:  # no wheel for this processor: the standard library does it, slower
    DEFLATE = zlib.compressobj


def packed(pieces: Iterable[bytes]) -> bytes:
    """Compress pieces as one text."""
    deflater = DEFLATE(level=LEVEL, wbits=GZIP_WBITS)
    found = [deflater.compress(piece) for piece in pieces]
    whole = b"".join([*found, deflater.flush()])
    # Flags (name, comment) and date stand after the magic bytes.
    return HEADER + bytes(5) + whole[8:]
