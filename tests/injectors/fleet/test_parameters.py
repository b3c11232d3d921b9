from __future__ import annotations

import numpy as np

from injectors.fleet.parameters import Edit, divide_q16, factor_q16, matches
from injectors.sim.noise import ONE_Q16

COLUMNS = {
    "driver": np.array(["1", "2", "2"], dtype=object),
    "ranks": np.array([4, 4, 1], dtype=np.int64),
}


def test_all_values_of_a_segment_must_agree() -> None:
    assert matches(COLUMNS, {"driver": "2"}).tolist() == [False, True, True]
    assert matches(COLUMNS, {"driver": "2", "ranks": "4"}).tolist() == [False, True, False]
    assert matches(COLUMNS, {}).all()


def test_edits_multiply_where_they_apply() -> None:
    edits = [
        Edit("bus_bandwidth", {"driver": "2"}, 500),
        Edit("bus_bandwidth", {"ranks": "4"}, 500),
        Edit("power_limit", {}, 100),
    ]
    found = factor_q16(COLUMNS, "bus_bandwidth", edits)
    assert found.tolist() == [ONE_Q16 // 2, ONE_Q16 // 4, ONE_Q16 // 2]


def test_dividing_rounds_down() -> None:
    assert divide_q16(np.array([7, 8]), np.array([ONE_Q16 // 2, 3 * ONE_Q16])).tolist() == [14, 2]
