"""The tables behind the pictures: a small result by hand, and what all tables must satisfy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cases.documents import read_record
from cases.errors import InputError
from harness.pictures.data import calibration, confusion, coverage, recall_by_cost, stored_scores
from harness.pictures.net_benefit import net_benefit_table
from harness.pictures.page import PICTURES, tables_of
from harness.stored import Summary
from scorers import Scores


def test_confusion_counts_every_case_by_hand(judged: Path) -> None:
    table = confusion(stored_scores(judged))
    found = {(r.true, r.blamed, r.kind): r.count for r in table.itertuples(index=False)}
    assert found == {
        ("dataloader_cpu_bound", "dataloader_cpu_bound", "found"): 2,
        ("cpu_contention_colocated", "slow_link", "same_domain"): 2,
        ("healthy", "(quiet)", "quiet"): 4,
        ("undecidable", "(abstained_blank)", "abstained_blank"): 1,
    }


def test_reliability_by_hand(judged: Path) -> None:
    table = calibration(stored_scores(judged))
    assert table["n"].tolist() == [2, 2]
    assert table["confidence"].tolist() == pytest.approx([0.6, 0.9])
    assert table["right"].tolist() == [0.0, 1.0]
    assert table["right_low"].isna().all()  # three groups


def test_coverage_by_hand(judged: Path) -> None:
    table = coverage(stored_scores(judged))
    # Two found at 0.9, four quiet at 0.8, two misled at 0.6; the ninth abstains.
    assert table["coverage"].tolist() == pytest.approx([0, 2 / 9, 6 / 9, 8 / 9])
    assert table["generalised_risk"].tolist() == pytest.approx([0, 0, 0, 2 / 9])


def many_faults(count: int) -> Scores:
    faults = pd.DataFrame(
        {
            "lost_fraction": np.linspace(0.9, 0.1, count),
            "right_cause_and_locus": [cost > 0.5 for cost in np.linspace(0.9, 0.1, count)],
            "group": [f"g{i % 10}" for i in range(count)],
        }
    )
    empty = pd.DataFrame()
    return Scores(empty, faults, empty, empty, {})


def test_recall_by_cost_has_bins_of_equal_size_the_cheapest_first() -> None:
    table = recall_by_cost(many_faults(40))
    assert table["faults"].tolist() == [10, 10, 10, 10]
    assert table["recall"].tolist() == [0, 0, 1, 1]
    assert table["low_cost"].iloc[0] == pytest.approx(0.1)
    assert table["high_cost"].iloc[-1] == pytest.approx(0.9)
    assert (table["cost"].diff().dropna() > 0).all()
    assert table["right_high"].iloc[0] > 0
    assert len(recall_by_cost(many_faults(1000))) == 8
    assert len(recall_by_cost(many_faults(3))) == 1
    assert recall_by_cost(many_faults(0)).empty


def test_net_benefit_of_diagnoser_and_floors(judged: Path) -> None:
    table = net_benefit_table(read_record(judged / "summary.json", Summary))
    own = table.loc[(table["diagnoser"] == "mine") & (table["mix"] == "own")]
    assert own["w"].tolist() == [0.5, 1, 2, 5]
    # At w = 1 all findings count: two found, two misled; at 2 those at 0.6 are dropped.
    assert own["value"].tolist() == pytest.approx([(2 - 2 * 0.5) / 9, 0, 2 / 9, 2 / 9])
    assert set(table.loc[table["floor"], "diagnoser"]) == {
        "silent",
        "constant",
        "random",
        "shotgun",
    }
    silent = table.loc[table["diagnoser"] == "silent"]
    assert (silent["value"] == 0).all()


def test_every_picture_has_a_table_of_plain_values(judged: Path) -> None:
    tables = tables_of(judged)
    assert list(tables) == list(PICTURES)
    for name, table in tables.items():
        assert len(table), name
        assert table.columns.is_unique


def test_a_folder_without_outcomes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must hold one of findings\.parquet"):
        tables_of(tmp_path)
    (tmp_path / "findings.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="evalharness score RESULTS"):
        tables_of(tmp_path)
