"""The `jobs` table as it is shipped."""

from __future__ import annotations

import numpy as np
import pytest

from cases.tables import TABLES, to_arrow
from injectors.fleet.period import Periods
from injectors.fleet.table import AT_THE_END, jobs_table
from injectors.fleet.traffic import Traffic

USUAL = Traffic(long_percent=35)
TIGHT = Traffic(long_percent=35, slack_percent=(90, 130))


def test_every_declared_column_is_there(periods: Periods) -> None:
    period = periods.get(USUAL, later=True)
    frame = jobs_table(period, period.healthy)
    assert set(frame.columns) == set(TABLES["jobs"].columns)
    written = to_arrow("jobs", frame)
    assert written["job"].to_pylist() == list(range(len(frame)))
    starts = written["start_ns"].to_pylist()
    assert starts == sorted(starts)


def test_parts_make_up_the_step(periods: Periods) -> None:
    period = periods.get(USUAL, later=True)
    done = jobs_table(period, period.healthy).dropna(subset=["step_ns"])
    parts = done[["compute_ns", "communication_ns", "copy_ns", "data_wait_ns"]].sum(axis=1)
    rest = (done["step_ns"] - parts) / 1e6
    assert (rest >= 1.5).all()
    assert rest.mean() == pytest.approx(1.8, abs=0.05)
    assert (done["tensor_active_percent"] < 60).all()


def test_jobs_report_only_if_they_end_well(periods: Periods) -> None:
    period = periods.get(TIGHT, later=True)
    frame = jobs_table(period, period.healthy)
    ended = frame["state"] == "completed"
    assert set(frame["state"]) == {"completed", "failed", "killed"}
    for column in AT_THE_END:
        assert (frame[column].notna() == ended).all(), column
    killed = frame["state"] == "killed"
    assert (frame["duration_ns"] <= frame["requested_ns"]).all()
    assert (frame["duration_ns"][killed] == frame["requested_ns"][killed]).all()
    assert 0.01 < (frame["state"] == "failed").mean() < 0.04


def test_duration_over_steps_is_the_mean_step_of_every_job(periods: Periods) -> None:
    period = periods.get(TIGHT, later=True)
    frame = jobs_table(period, period.healthy)
    order = np.argsort(period.world.start_ns, kind="stable")
    ratio = frame["duration_ns"] / frame["steps"] / period.healthy.step_ns[order]
    assert ratio.min() >= 1
    assert ratio.median() < 1.02


def test_withheld_columns_hold_nothing(periods: Periods) -> None:
    period = periods.get(USUAL, later=True)
    whole = jobs_table(period, period.healthy)
    less = jobs_table(period, period.healthy, ["power_w", "event_reasons", "step_ns"])
    assert less[["power_w", "event_reasons", "step_ns"]].isna().all(axis=None)
    others = [c for c in whole.columns if c not in ("power_w", "event_reasons", "step_ns")]
    assert less[others].equals(whole[others])


def test_a_serial_names_the_gpu_of_a_single_rank_only(periods: Periods) -> None:
    period = periods.get(USUAL, later=True)
    frame = jobs_table(period, period.healthy)
    assert (frame["gpu_serial"].notna() == (frame["ranks"] == 1)).all()


def test_throughput_counts_tokens_or_samples(periods: Periods) -> None:
    period = periods.get(USUAL, later=True)
    done = jobs_table(period, period.healthy).dropna(subset=["step_ns"])
    each = np.where(done["model"] == "gpt-350m", done["input_size"], 1)
    expected = done["batch_size"] * each * 1e9 / done["step_ns"].astype(float)
    assert np.allclose(done["throughput"], expected, rtol=1e-12)
