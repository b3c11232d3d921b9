"""A case as a diagnoser sees it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from cases.bundle import Suite
from cases.case import Case, SignalTable
from cases.errors import BundleError, InputError
from cases.table_files import to_frame
from cases.tables import TABLES, to_arrow


@pytest.fixture
def case(tiny_suite: Path, tiny_ids: dict[str, str]) -> Case:
    return Suite.open(tiny_suite).case(tiny_ids["loader_dev"])


@pytest.fixture
def blind(tiny_suite: Path, tiny_ids: dict[str, str]) -> Case:
    """The case without loader and processes."""
    return Suite.open(tiny_suite).case(tiny_ids["undecidable_test"])


def test_every_table_is_an_attribute(blind: Case) -> None:
    for name, table in TABLES.items():
        frame = getattr(blind, name)
        assert list(frame.columns) == list(table.columns)
        assert blind.has(name) == (len(frame) > 0)
        described = vars(type(blind).__mro__[1])[name]
        assert isinstance(described, SignalTable) and described.__doc__ == table.about


def test_values_arrive(case: Case) -> None:
    assert case.steps["duration_ns"].mean() == pytest.approx(15e6, rel=0.01)
    assert case.reference is not None
    assert case.reference.steps["duration_ns"].mean() == pytest.approx(10e6, rel=0.01)
    assert case.config == {"batch_size": 8}
    assert case.steps is case.steps


def test_nulls_stay_nulls_and_numbers_exact() -> None:
    big = 2**53 + 1
    frame = pd.DataFrame({"rank": [0, 1], "time_ns": [0, 0], "name": ["a", None]})
    frame["rx_bytes"] = pd.array([big, None], dtype="Int64")
    back = to_frame(to_arrow("network", frame.drop(columns="name")))
    assert str(back["rank"].dtype) == "int64"
    assert back["rx_bytes"].tolist() == [big, pd.NA]
    assert back["tx_bytes"].isna().all()


def test_traces(case: Case) -> None:
    assert case.trace_ranks == (0,)
    assert list(case.trace(0)["name"])[:2] == ["ProfilerStep#0", "aten::mm"]
    assert (case.trace_events["rank"] == 0).all()
    assert str(case.trace_events["name"].dtype) == "category"
    assert gzip.decompress(case.kineto_path(0).read_bytes()).startswith(b"{")
    with pytest.raises(InputError, match=r"rank with a trace \(\[0\]\), found 1"):
        case.trace(1)


def test_no_trace_is_an_empty_table(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    folder = tiny_copy / tiny_ids["loader_dev"]
    for part in (folder, folder / "reference"):
        (part / "traces" / "rank0.json.gz").unlink()
    info = folder / "case.json"
    info.write_text(info.read_text().replace(',\n   "trace_events"', ""))
    case = Case.open(folder)
    assert not case.has("trace_events")
    assert case.trace_events.empty and "duration_ns" in case.trace_events
    assert case.sql("SELECT count(*) AS n FROM trace_events")["n"].item() == 0


def test_trace_of_another_rank_is_refused(tiny_copy: Path, tiny_ids: dict[str, str]) -> None:
    traces = tiny_copy / tiny_ids["loader_dev"] / "traces"
    (traces / "rank0.json.gz").rename(traces / "rank1.json.gz")
    with pytest.raises(BundleError, match="must be the trace of rank 1, found 0"):
        Case.open(traces.parent).trace(1)


def test_unknown_signal_lists_those_there_are(case: Case) -> None:
    with pytest.raises(InputError, match=r"'steps'.*found 'step'"):
        case.has("step")
    with pytest.raises(AttributeError):
        case.label  # noqa: B018
