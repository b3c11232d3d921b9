"""Arguments of kernels, against numbers that CUPTI gave for real ones."""

from __future__ import annotations

import pytest

from injectors.sim.kineto.device_work import occupancy_percent, round_half_up
from injectors.sim.machine import GPUS
from injectors.sim.program import Label


@pytest.mark.parametrize(
    ("gpu", "blocks", "threads", "registers", "shared", "percent"),
    [
        ("a100", 512, 512, 40, 400, 75),
        ("a100", 1, 128, 16, 0, 0),
        ("a100", 1024, 128, 16, 0, 59),
        ("a100", 640, 128, 122, 12544, 25),
        ("h100", 17888, 128, 16, 0, 100),
    ],
)
def test_occupancy(
    gpu: str, blocks: int, threads: int, registers: int, shared: int, percent: int
) -> None:
    label = Label(
        grid=(blocks, 1, 1), block=(threads, 1, 1), registers=registers, shared_bytes=shared
    )
    assert occupancy_percent(label, GPUS[gpu]) == percent


def test_quotients_are_rounded() -> None:
    assert [round_half_up(n, 4) for n in (1, 2, 5, 6)] == [0, 1, 1, 2]
