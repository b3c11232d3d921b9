"""One signal table in one Parquet file: small when written, not trusted when read."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cases.documents import write_bytes
from cases.errors import BundleError
from cases.tables import TABLES

MAX_FILE_BYTES = 64 * 2**20
MAX_ROWS = 5_000_000
MAX_CONTENT_BYTES = 2**30
ZSTD_LEVEL, QUICK_LEVEL = 19, 3
MASKED = {
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def write_table(path: Path, table: pa.Table, quick: bool = False) -> None:
    """Write a table that `cases.tables.to_arrow` made, with the smaller of two encodings.

    Quickly is ten times as fast and about 5 % larger: one encoding, compressed less.
    """
    table = table.replace_schema_metadata(None)
    encodings = {
        name: "DELTA_BINARY_PACKED" if table.schema.field(name).type == pa.int64() else "PLAIN"
        for name in table.column_names
    }
    level = QUICK_LEVEL if quick else ZSTD_LEVEL
    deltas = _encoded(table, level, use_dictionary=False, column_encoding=encodings)
    if not quick:
        dictionary = _encoded(table, level, use_dictionary=True)
        deltas = min(deltas, dictionary, key=len)
    write_bytes(path, deltas)


def _encoded(table: pa.Table, level: int, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(
        table,
        buffer,
        row_group_size=max(table.num_rows, 1),
        compression="zstd",
        compression_level=level,
        write_statistics=False,
        store_schema=False,
        write_page_checksum=True,
        **options,
    )
    return buffer.getvalue()


def read_table(path: Path, name: str) -> pa.Table:
    """Read table `name` from `path`; raises BundleError unless it is as declared.

    Checked: size, page checksums, columns, types, and that what was not measured is null
    rather than NaN.
    """
    declared = TABLES[name].schema
    texts = [field.name for field in declared if field.type == pa.string()]
    try:
        _check_size(path, path.stat().st_size, MAX_FILE_BYTES, "bytes")
        # Text stays dictionary-encoded until its length is known: a small file can repeat
        # one long string millions of times.
        with pq.ParquetFile(path, page_checksum_verification=True, read_dictionary=texts) as file:
            _check_size(path, file.metadata.num_rows, MAX_ROWS, "rows")
            _check_schema(path, file.schema_arrow, declared)
            _check_bare(path, file)
            _check_size(path, _declared_bytes(file.metadata), MAX_CONTENT_BYTES, "bytes")
            table = file.read()
        for text in texts:
            _check_size(path, _text_bytes(table.column(text)), MAX_CONTENT_BYTES, "bytes")
        table = table.cast(declared)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise BundleError(f"must be an intact Parquet file ({reason})", where=path) from None
    _check_numbers(path, table)
    return table


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Turn a table into a DataFrame in which nulls stay nulls.

    A complete integer column is int64 and one with nulls is Int64, so no number is rounded.
    """
    gaps = {name for name in table.column_names if table.column(name).null_count}
    complete = table.drop_columns(list(gaps)).to_pandas()
    partial = table.select(sorted(gaps)).to_pandas(types_mapper=MASKED.get)
    return pd.concat([complete, partial], axis="columns")[table.column_names]


def _check_size(path: Path, size: int, limit: int, unit: str) -> None:
    if size > limit:
        raise BundleError(f"must hold at most {limit} {unit}", where=path, found=size)


def _check_schema(path: Path, found: pa.Schema, declared: pa.Schema) -> None:
    if found.names != declared.names:
        differing = sorted(set(found.names) ^ set(declared.names)) or found.names
        raise BundleError(
            f"must have the columns {declared.names}",
            where=path,
            field=differing[0],
            found=found.names,
        )
    for field in declared:
        kind = found.field(field.name).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if plain != field.type:
            raise BundleError(
                f"must be {field.type}", where=path, field=field.name, found=str(plain)
            )


def _check_bare(path: Path, file: pq.ParquetFile) -> None:
    """Refuse words beside the table: no digest covers them and no reader shows them."""
    if file.metadata.metadata or file.schema_arrow.metadata:
        found = sorted({**(file.metadata.metadata or {}), **(file.schema_arrow.metadata or {})})
        raise BundleError("must carry no metadata of its own", where=path, found=found)


def _declared_bytes(metadata: pq.FileMetaData) -> int:
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    return sum(group.total_byte_size for group in groups)


def _text_bytes(column: Any) -> int:
    return sum(
        pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
        for chunk in column.chunks
    )


def _check_numbers(path: Path, table: pa.Table) -> None:
    for name in table.column_names:
        column = table.column(name)
        if column.type == pa.float64() and pc.any(pc.invert(pc.is_finite(column))).as_py():
            raise BundleError("must be finite, or null where unknown", where=path, field=name)
