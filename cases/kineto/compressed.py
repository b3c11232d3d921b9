"""Reading gzip within a bound, by the file's first bytes and not by its name."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

from cases.errors import TraceError

GZIP_MAGIC = b"\x1f\x8b"
GZIP_WBITS = 31  # zlib's number for "a gzip header and trailer around the data"

try:
    from isal import isal_zlib

    INFLATE: Any = isal_zlib.decompressobj
    INFLATE_ERRORS: Any = (isal_zlib.error, zlib.error)
except ImportError:  # no wheel for this processor: the standard library reads the same bytes
    INFLATE, INFLATE_ERRORS = zlib.decompressobj, (zlib.error,)


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """Read `path`, gunzipped if it begins like gzip; refuse more than `max_bytes`."""
    try:
        if path.stat().st_size > max_bytes:
            raise too_large(path, max_bytes)
        raw = path.read_bytes()
    except OSError as error:
        raise TraceError(f"must be readable ({error.strerror})", where=path) from None
    return gunzip(raw, path, max_bytes) if raw.startswith(GZIP_MAGIC) else raw


def gunzip(raw: bytes, where: str | Path, max_bytes: int) -> bytes:
    """Decompress all gzip members of `raw`, never holding more than `max_bytes` of them.

    Raises TraceError where the data are cut short, damaged, or larger than the bound.
    """
    parts: list[bytes] = []
    room = max_bytes
    while raw:
        inflater = INFLATE(wbits=GZIP_WBITS)
        try:
            part = inflater.decompress(raw, room + 1)
        except INFLATE_ERRORS as error:
            raise TraceError(f"must be intact gzip ({error})", where=where) from None
        room -= len(part)
        if room < 0:
            raise too_large(where, max_bytes)
        if not inflater.eof:
            raise TraceError("must be whole gzip, but the compressed data end early", where=where)
        parts.append(part)
        raw = inflater.unused_data.lstrip(b"\0")  # padding between members is legal
    return parts[0] if len(parts) == 1 else b"".join(parts)


def too_large(where: str | Path, max_bytes: int) -> TraceError:
    """The error for a trace above the bound."""
    return TraceError(f"must hold at most {max_bytes} bytes once decompressed", where=where)
