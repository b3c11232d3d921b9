"""Noise: factors of mean 1, parts that still add up, and what is no measurement stays."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cases.tables import TABLES
from harness.degrade.measurements import BY_ROW, BY_VALUE, SINCE, measurement_noise, noisy, scaled


def test_factors_are_exact_and_large_numbers_fit() -> None:
    half, twice = 1 << 15, 1 << 17
    values = pd.Series([10**15, 3, -7])
    assert scaled(values, np.array([twice, half, half])).tolist() == [2 * 10**15, 2, -3]
    floats = scaled(pd.Series([1.5, None]), np.array([twice, half]))
    assert floats[0] == 3.0
    assert np.isnan(floats[1])


def test_deviation_is_the_level_and_the_mean_stays(small: SimpleNamespace) -> None:
    frame = small.steps(1, 20_000, step_ns=1_000_000)
    for level in (0.05, 0.2):
        found = noisy("steps", frame, 5, int(level * 65536))["duration_ns"] / 1_000_000
        assert found.mean() == pytest.approx(1, abs=0.01)
        assert found.std() == pytest.approx(level, rel=0.05)


def test_parts_of_a_step_still_add_up(small: SimpleNamespace) -> None:
    found = noisy("steps", small.steps(2, 50, step_ns=1_000_000), 5, 65536 // 5)
    assert (found["data_wait_ns"] / found["duration_ns"]).round(4).eq(0.2).all()
    assert found["start_ns"].tolist() == small.steps(2, 50, step_ns=1_000_000)["start_ns"].tolist()


def test_sensors_err_each_on_its_own_and_percentages_end_at_100(small: SimpleNamespace) -> None:
    frame = pd.DataFrame({"utilization_percent": [99.0] * 50, "power_w": [99.0] * 50})
    found = noisy("gpu", small.table("gpu", frame), 5, 65536 // 5)
    assert found["utilization_percent"].max() == 100.0
    assert found["power_w"].max() > 100.0
    low = found["utilization_percent"] < 100
    assert (found["utilization_percent"] != found["power_w"])[low].all()


def test_collectives_keep_their_begin(small: SimpleNamespace) -> None:
    times = {"created_ns": [100, 200], "started_ns": [None, 1200], "completed_ns": [150, 6200]}
    frame = small.table("collectives", pd.DataFrame({"rank": 0, "seq": [0, 1], **times}))
    found = noisy("collectives", frame, 5, 65536 // 5)
    assert found["created_ns"].tolist() == [100, 200]
    assert found["started_ns"].isna().tolist() == [True, False]
    # One factor a row: a sixth of the way remains a sixth, but for rounding.
    row = found.iloc[1]
    assert row["started_ns"] - 200 == pytest.approx((row["completed_ns"] - 200) / 6, abs=1)
    assert row["completed_ns"] != 6200


def test_reference_and_run_draw_apart_and_levels_draw_alike(small: SimpleNamespace) -> None:
    job = small.copy({"steps": small.steps(1, 50, step_ns=1_000_000)})
    mild, strong = (measurement_noise(job, level, 1) for level in (0.05, 0.2))
    assert not mild.run.frame("steps").equals(mild.reference.frame("steps"))
    errors = [c.run.frame("steps")["duration_ns"] - 1_000_000 for c in (mild, strong)]
    assert ((errors[0] > 0) == (errors[1] > 0)).all()
    assert errors[1].abs().sum() == pytest.approx(4 * errors[0].abs().sum(), rel=0.01)


@pytest.mark.parametrize("name", [*BY_ROW, *BY_VALUE, *SINCE])
def test_columns_are_declared_and_numbers(name: str) -> None:
    columns = [*BY_ROW.get(name, ()), *BY_VALUE.get(name, ())]
    if name in SINCE:
        columns += [SINCE[name][0], *SINCE[name][1]]
    assert {TABLES[name].columns[column][0] for column in columns} <= {"int", "float"}
