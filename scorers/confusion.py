"""Which cause was blamed for which: the confusion of causes."""

from __future__ import annotations

import pandas as pd

from scorers.tables import Tables

COLUMNS = ["true", "blamed", "kind", "count"]


def confusion_table(tables: Tables) -> pd.DataFrame:
    """Count true cause x blamed cause.

    A fault has one row's worth: `blamed` is the cause that decided its bucket, empty if none
    did; `kind` is the bucket, or the kind of misattribution. False findings on other cases
    stand under the true "cause" `healthy` or `undecidable`. False findings of faulty cases
    that stand for no fault are left to the table of findings.

    Returns:
        Columns true, blamed, kind, count; sorted.
    """
    faults, findings = tables.faults, tables.findings
    on_faults = pd.DataFrame(
        {
            "true": faults["cause"],
            "blamed": faults["blamed"].fillna(""),
            "kind": faults["kind"].where(faults["kind"].notna(), faults["bucket"]),
        }
    )
    other = findings.loc[findings["verdict"] != "faulty"]
    on_others = pd.DataFrame(
        {"true": other["verdict"], "blamed": other["cause"], "kind": other["kind"]}
    )
    rows = pd.concat([on_faults, on_others]).astype(str)
    return rows.groupby(COLUMNS[:3]).size().rename("count").reset_index()
