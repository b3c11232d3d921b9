"""Reading finished results back: what tracking, the gate and the leaderboard start from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict

from cases.documents import read_json, read_record
from cases.errors import InputError
from scorers.case_rows import CASE_COLUMNS
from scorers.tables import Tables

FILES = ("run.json", "answers.jsonl", "outcomes.parquet", "summary.json")
# Rows of faults and findings, and rulings on evidence: results of older versions lack them.
MORE_FILES = ("faults.parquet", "findings.parquet", "evidence.jsonl")


class _Stored(BaseModel):
    """A part of summary.json; what later scorers add to it is none of a reader's business."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Metric(_Stored):
    """One metric with its two-sided interval; `value` None where `note` says why."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    groups: int | None = None
    note: str | None = None


class Isolation(_Stored):
    """The level that the canary proved, and whether labels were out of reach."""

    level: str
    sealed: bool


class Summary(_Stored):
    """summary.json: one diagnoser's scores on one suite."""

    format: str = "evalharness.summary/1.0"
    suite: str
    suite_digest: str
    scoring_version: str
    diagnoser: str
    diagnoser_digest: str = ""
    isolation: Isolation
    labels: str
    ranked: bool
    composition: dict[str, int] = {}
    metrics: dict[str, Metric]
    buckets: dict[str, Any] = {}
    floors: dict[str, dict[str, float | None]] = {}
    timing: dict[str, float | None] = {}
    cost: dict[str, Any] = {}


@dataclass(frozen=True)
class StoredResult:
    """One results folder `<out>/<suite>/<diagnoser>/`, already scored."""

    folder: Path
    run: dict[str, Any]
    summary: Summary

    def outcomes(self) -> pd.DataFrame:
        """Read outcomes.parquet: one row per case, indexed by `case_id`, sorted."""
        path = self.folder / "outcomes.parquet"
        table = self._table("outcomes.parquet")
        if "case_id" not in table or table["case_id"].duplicated().any():
            raise InputError("must hold one row per case_id", where=path)
        return table.set_index("case_id").sort_index()

    def tables(self) -> Tables:
        """Read all outcomes: rows of cases, sorted, of faults and of findings.

        Raises:
            InputError: a table is missing, as in results of older versions, or broken.
        """
        cases = self.outcomes().reset_index()
        missing = [name for name in CASE_COLUMNS if name not in cases]
        if missing:
            must = "must have all columns of outcomes (`evalharness score` writes it anew)"
            raise InputError(must, where=self.folder / "outcomes.parquet", found=missing)
        return Tables(cases, self._table("faults.parquet"), self._table("findings.parquet"))

    def _table(self, name: str) -> pd.DataFrame:
        path = self.folder / name
        if not path.is_file():
            raise InputError("must exist (`evalharness score` writes it anew)", where=path)
        try:
            return pd.read_parquet(path)
        except (OSError, ValueError) as error:
            raise InputError(f"must be a readable table ({error})", where=path) from None


def read_stored(folder: Path) -> StoredResult:
    """Read one results folder.

    Raises:
        InputError: a file is missing or broken; the message names it.
    """
    for name in FILES:
        if not (folder / name).is_file():
            raise InputError(
                f"must hold {', '.join(FILES)} (written by `evalharness run` or `score`)",
                where=folder,
                found=f"no {name}",
            )
    run = read_json(folder / "run.json")
    if not isinstance(run, dict) or "key" not in run:
        raise InputError("must be an object with a key", where=folder / "run.json", found=run)
    return StoredResult(folder, run, read_record(folder / "summary.json", Summary))


def find_stored(path: Path) -> list[Path]:
    """Return the scored results folders at or below `path`, sorted.

    Raises:
        InputError: there are none.
    """
    if (path / "summary.json").is_file():
        return [path]
    found = sorted(
        folder.parent for pattern in ("*", "*/*") for folder in path.glob(f"{pattern}/summary.json")
    )
    if not found:
        raise InputError("must be or hold a results folder with a summary.json", where=path)
    return found


def read_one(path: Path) -> StoredResult:
    """Read the single results folder at or below `path`."""
    found = find_stored(path)
    if len(found) > 1:
        names = ", ".join(str(folder.relative_to(path)) for folder in found)
        raise InputError(f"must be one results folder, holds {names}", where=path)
    return read_stored(found[0])
