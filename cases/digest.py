"""Identity by content: what a case says, not the bytes of the files that say it.

Parquet and gzip bytes change with the version of the library that wrote them, so a digest
covers the values instead. Rules: rows count in their stored order; columns in declared order
with name, type and validity; a null holds no value; -0.0 is 0.0; every NaN is one NaN, and
not a null. Digests read `sha256:<64 hex digits>`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cases.documents import canonical_json
from cases.tables import TYPES

KINDS = {str(arrow): kind for kind, arrow in TYPES.items()}


def document_digest(document: Any) -> str:
    """Digest of a JSON document, whatever its key order and white space.

    >>> document_digest({"b": 1, "a": 2}) == document_digest({"a": 2, "b": 1})
    True
    """
    return _named(hashlib.sha256(canonical_json(document)))


def bytes_digest(content: bytes) -> str:
    """Digest of a trace's decompressed bytes."""
    return _named(hashlib.sha256(content))


def table_digest(name: str, table: pa.Table) -> str:
    """Digest of one signal table: its name, columns, types, validity and values."""
    digest = hashlib.sha256()
    _put(digest, name.encode(), np.int64(table.num_rows).tobytes())
    for column in table.column_names:
        array = table.column(column).combine_chunks()
        _put(digest, column.encode(), KINDS[str(array.type)].encode())
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        _put(digest, valid.astype("u1").tobytes(), *_values(array))
    return _named(digest)


def case_digest(
    info: Mapping[str, Any], run: Mapping[str, str], reference: Mapping[str, str] | None
) -> str:
    """Digest of one case from its public description and the digests of its parts.

    Args:
        info: case.json as a document.
        run: Digest of each table and trace, by name.
        reference: The same of the reference run, None where there is none.
    """
    parts = {"info": info, "run": dict(run), "reference": reference and dict(reference)}
    return document_digest(parts)


def suite_digest(cases: Mapping[str, str], truths: Mapping[str, str], taxonomy: str) -> str:
    """Digest of a suite from those of its cases and labels (by case id) and its taxonomy.

    Results may be ranked together only where this digest is equal.

    >>> suite_digest({"aaaa": "x"}, {}, "t") == suite_digest({}, {"aaaa": "x"}, "t")
    False
    """
    return document_digest({"cases": dict(cases), "truths": dict(truths), "taxonomy": taxonomy})


def _values(array: Any) -> list[bytes]:
    kind = KINDS[str(array.type)]
    if kind == "text":
        filled = array.fill_null("")
        lengths = pc.binary_length(filled).to_numpy(zero_copy_only=False)
        return [lengths.astype("<i8").tobytes(), "".join(filled.to_pylist()).encode()]
    if kind == "float":
        floats = array.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        return [np.where(np.isnan(floats), np.nan, floats).astype("<f8").tobytes()]
    zero, dtype = (False, "u1") if kind == "flag" else (0, "<i8")
    return [array.fill_null(zero).to_numpy(zero_copy_only=False).astype(dtype).tobytes()]


def _put(digest: Any, *parts: bytes) -> None:
    """Add parts with their lengths, so that no two sequences of parts look alike."""
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)


def _named(digest: Any) -> str:
    return f"sha256:{digest.hexdigest()}"
