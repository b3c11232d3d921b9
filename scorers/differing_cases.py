"""Where two diagnosers differ, case by case and cause by cause."""

from __future__ import annotations

import pandas as pd

from scorers.tables import Tables

COLUMN = "net_benefit_w1"
ANSWER = ["bucket", "misled", COLUMN]


def flipped(
    pairs: pd.DataFrame, first_findings: pd.DataFrame, second_findings: pd.DataFrame
) -> pd.DataFrame:
    """Return the cases that ended in another bucket or net benefit, with what was blamed.

    Args:
        pairs: One row per case, the columns of ANSWER with suffixes `_a` and `_b`.
        first_findings: What the one said.
        second_findings: What the other said.
    """
    other = pairs["bucket_a"] != pairs["bucket_b"]
    other |= (pairs[f"{COLUMN}_a"] - pairs[f"{COLUMN}_b"]).abs() > 1e-12
    rows = pairs.loc[other].reset_index(drop=True)
    for suffix, findings in (("_a", first_findings), ("_b", second_findings)):
        own = findings.loc[findings["case_id"].isin(rows["case_id"])]
        blamed = own.groupby("case_id")["cause"].agg(", ".join).to_dict()
        rows[f"blamed{suffix}"] = [blamed.get(case_id, "") for case_id in rows["case_id"]]
    return rows


def causes(first: Tables, second: Tables) -> pd.DataFrame:
    """Count for each cause how often each found it and how often each blamed it falsely.

    Returns:
        cause, faults, groups, found_a, found_b, falsely_a, falsely_b: those first where the
        two differ most.
    """
    grouped = first.faults.groupby("cause")
    columns = {"faults": grouped.size(), "groups": grouped["group"].nunique()}
    for suffix, tables in (("_a", first), ("_b", second)):
        found = tables.faults["right_cause_and_locus"].astype(int)
        columns[f"found{suffix}"] = found.groupby(tables.faults["cause"]).sum()
    for suffix, tables in (("_a", first), ("_b", second)):
        false = tables.findings.loc[tables.findings["status"] == "false"]
        columns[f"falsely{suffix}"] = false.groupby("cause").size()
    table = pd.DataFrame(columns).fillna(0).astype(int).rename_axis("cause").reset_index()
    apart = (table["found_a"] - table["found_b"]).abs()
    apart += (table["falsely_a"] - table["falsely_b"]).abs()
    order = apart.sort_values(ascending=False, kind="stable").index
    return table.loc[order].reset_index(drop=True)
