"""Digests follow the content and nothing else."""

from __future__ import annotations

import hashlib
import struct

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.digest import case_digest, document_digest, suite_digest, table_digest
from cases.tables import to_arrow

INTS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=20)
TEXTS = st.lists(st.none() | st.text(max_size=8), max_size=20)


def _block(*parts: bytes) -> bytes:
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def test_worked_example_byte_by_byte() -> None:
    table = pa.table({"n": pa.array([7, None], pa.int64()), "t": pa.array(["é", "b"])})
    content = _block(b"logs", struct.pack("<q", 2))
    content += _block(b"n", b"int", b"\x01\x00", struct.pack("<2q", 7, 0))
    content += _block(b"t", b"text", b"\x01\x01", struct.pack("<2q", 2, 1), "éb".encode())
    assert table_digest("logs", table) == "sha256:" + hashlib.sha256(content).hexdigest()


def test_zero_and_nan_have_one_form_each() -> None:
    def digest(*values: float | None) -> str:
        return table_digest("gpu", pa.table({"x": pa.array(values, pa.float64())}))

    other_nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
    assert digest(0.0) == digest(-0.0)
    assert digest(float("nan")) == digest(other_nan)
    assert len({digest(0.0), digest(None), digest(float("nan"))}) == 3


@given(INTS, INTS)
def test_equal_digest_means_equal_integers(
    first: list[int | None], second: list[int | None]
) -> None:
    digests = [
        table_digest("steps", pa.table({"x": pa.array(values, pa.int64())}))
        for values in (first, second)
    ]
    assert (digests[0] == digests[1]) == (first == second)


@given(TEXTS, TEXTS)
def test_equal_digest_means_equal_texts(first: list[str | None], second: list[str | None]) -> None:
    digests = [
        table_digest("logs", pa.table({"x": pa.array(values, pa.string())}))
        for values in (first, second)
    ]
    assert (digests[0] == digests[1]) == (first == second)


@given(INTS, st.integers(0, 20))
def test_chunks_and_slices_make_no_difference(values: list[int | None], cut: int) -> None:
    whole = pa.chunked_array([pa.array(values, pa.int64())])
    parts = pa.chunked_array([*whole.slice(0, cut).chunks, *whole.slice(cut).chunks], pa.int64())
    assert table_digest("x", pa.table({"a": whole})) == table_digest("x", pa.table({"a": parts}))


def test_names_and_order_count() -> None:
    one, two = pa.array([1], pa.int64()), pa.array([2], pa.int64())
    digests = {
        table_digest("steps", pa.table({"a": one, "b": two})),
        table_digest("host", pa.table({"a": one, "b": two})),
        table_digest("steps", pa.table({"b": two, "a": one})),
        table_digest("steps", pa.table({"a": two, "b": one})),
        table_digest("steps", pa.table({"a": pa.array([1.0]), "b": two})),
    }
    assert len(digests) == 5


def test_row_order_of_the_frame_does_not_count() -> None:
    frame = pd.DataFrame({"rank": [0, 0, 1], "step": [0, 1, 0], "duration_ns": [3, 4, 5]})
    digests = {table_digest("steps", to_arrow("steps", f)) for f in (frame, frame.iloc[::-1])}
    assert len(digests) == 1


@pytest.mark.parametrize("reference", [None, {}, {"steps": "b"}])
def test_reference_counts(reference: dict[str, str] | None) -> None:
    run = {"steps": "a"}
    assert case_digest({"id": "x"}, run, reference) != case_digest({"id": "x"}, run, {"steps": "a"})


def test_every_part_of_a_suite_counts() -> None:
    digests = {
        suite_digest({"a": "1"}, {"a": "2"}, "t"),
        suite_digest({"a": "9"}, {"a": "2"}, "t"),
        suite_digest({"a": "1"}, {"a": "9"}, "t"),
        suite_digest({"a": "1"}, {"a": "2"}, "u"),
    }
    assert len(digests) == 4
    assert suite_digest({"a": "1", "b": "2"}, {}, "t") == suite_digest(
        {"b": "2", "a": "1"}, {}, "t"
    )


def test_documents_are_canonical() -> None:
    canonical = '{"a":[1,2.5],"b":null}'
    expected = "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
    assert document_digest({"b": None, "a": [1, 2.5]}) == expected
