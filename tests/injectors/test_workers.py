from __future__ import annotations

import os
import signal
import time

import pytest

from cases.errors import HarnessError
from injectors.workers import Workers


def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def fail(number: int) -> int:
    if number == 1:
        raise ValueError("one")
    time.sleep(0.01)
    return number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_one_works_here_and_in_order() -> None:
    with Workers(1) as workers:
        found = list(workers.each(square, range(5)))
    assert found == [(n * n, os.getpid()) for n in range(5)]


def test_several_work_elsewhere_and_do_all() -> None:
    with Workers(2) as workers:
        found = list(workers.each(square, range(5)))
    assert sorted(value for value, _ in found) == [0, 1, 4, 9, 16]
    assert os.getpid() not in {pid for _, pid in found}


def test_what_goes_wrong_is_told() -> None:
    with pytest.raises(ValueError, match="one"), Workers(2) as workers:
        list(workers.each(fail, range(50)))


def test_a_process_that_is_killed_is_no_result() -> None:
    with pytest.raises(HarnessError, match="one was killed"), Workers(2) as workers:
        list(workers.each(die, range(3)))
