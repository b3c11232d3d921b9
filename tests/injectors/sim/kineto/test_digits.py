"""Numbers in fixed places."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from injectors.sim.kineto.digits import Slots, squeezed, widths
from injectors.sim.kineto.number_writer import Backend, number_writer

BACKENDS: list[Backend] = ["numpy", "numba"]
if importlib.util.find_spec("numba") is None:
    BACKENDS = ["numpy"]


def written(values: list[int], whole: list[int], decimals: list[int], backend: Backend) -> bytes:
    """Write numbers between bars, in places of so many digits before and after the point."""
    slots = [
        b"\0" * size + (b"." + b"\0" * after if after else b"")
        for size, after in zip(whole, decimals, strict=True)
    ]
    text = b"|" + b"|".join(slots) + b"|"
    ends = np.cumsum([1 + len(slot) for slot in slots])
    first = ends - [len(slot) for slot in slots]
    buffer = np.frombuffer(text, np.uint8).copy()
    given_slots = Slots(first, np.array(whole), np.array(decimals))
    number_writer(given_slots, backend).write(buffer, np.array(values, np.int64))
    return squeezed(buffer.tobytes())


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_fill_their_places_or_leave_no_trace(backend: Backend) -> None:
    values, whole = [1234567, 5, 98765, 0, 7, 12345, 10], [4, 1, 4, 3, 1, 5, 2]
    found = written(values, whole, [3, 3, 3, 0, 0, 0, 0], backend)
    assert found == b"|1234.567|0.005|98.765|0|7|12345|10|"


@pytest.mark.parametrize("backend", BACKENDS)
def test_whether_anything_was_left_is_told(backend: Backend) -> None:
    buffer = np.zeros(3, np.uint8)
    writer = number_writer(Slots(np.array([0]), np.array([3]), np.array([0])), backend)
    assert not writer.write(buffer, np.array([100]))
    buffer[:] = 0
    assert writer.write(buffer, np.array([99]))
    assert buffer.tobytes() == b"\x0099"


@pytest.mark.parametrize("backend", BACKENDS)
@given(st.lists(st.tuples(st.integers(0, 10**15), st.sampled_from([0, 3, 6])), min_size=1))
def test_any_numbers_are_written_as_python_does(
    backend: Backend, numbers: list[tuple[int, int]]
) -> None:
    values = [value for value, _ in numbers]
    decimals = [after for _, after in numbers]
    scales = [10**after for after in decimals]
    whole = widths(np.array(values) // np.array(scales)).tolist()
    wider = [size + number % 3 for number, size in enumerate(whole)]
    expected = [
        f"{value // scale}.{value % scale:0{after}d}" if after else str(value)
        for value, scale, after in zip(values, scales, decimals, strict=True)
    ]
    found = written(values, wider, decimals, backend)
    assert found == ("|" + "|".join(expected) + "|").encode()
