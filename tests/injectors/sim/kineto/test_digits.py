"""Numbers in fixed places."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from injectors.sim.kineto.digits import places_of, squeezed, widths, write


def written(values: list[int], whole: list[int], decimals: int) -> bytes:
    """Write numbers between bars, in places of so many digits before the point."""
    slots = [b"\0" * size + (b"." + b"\0" * decimals if decimals else b"") for size in whole]
    text = b"|" + b"|".join(slots) + b"|"
    ends = np.cumsum([1 + len(slot) for slot in slots])
    starts = ends - [len(slot) for slot in slots]
    buffer = np.frombuffer(text, np.uint8).copy()
    places = places_of(starts, np.array(whole), decimals, np.arange(len(values)))
    write(buffer, places, np.array(values, np.int64))
    return squeezed(buffer.tobytes())


def test_numbers_with_decimals_fill_their_places_or_leave_no_trace() -> None:
    assert written([1234567, 5, 98765], [4, 1, 4], 3) == b"|1234.567|0.005|98.765|"


def test_whole_numbers() -> None:
    assert written([0, 7, 12345, 10], [3, 1, 5, 2], 0) == b"|0|7|12345|10|"


def test_whether_anything_was_left_is_told() -> None:
    buffer = np.zeros(3, np.uint8)
    places = places_of(np.array([0]), np.array([3]), 0, np.array([0]))
    assert not write(buffer, places, np.array([100]))
    assert write(buffer, places, np.array([99]))
    assert buffer.tobytes() == b"\x0099"


@given(st.lists(st.integers(0, 10**15), min_size=1), st.sampled_from([0, 3, 6]))
def test_any_numbers_are_written_as_python_does(values: list[int], decimals: int) -> None:
    scale = 10**decimals
    whole = widths(np.array(values) // scale).tolist()
    widest = [size + i % 3 for i, size in enumerate(whole)]
    expected = [f"{v // scale}.{v % scale:0{decimals}d}" if decimals else str(v) for v in values]
    assert written(values, widest, decimals) == ("|" + "|".join(expected) + "|").encode()
