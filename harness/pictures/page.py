"""One standalone page of all pictures of a results folder, and each one's data beside it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from cases.documents import read_json, read_record, write_bytes
from cases.errors import InputError
from harness.leaderboard_report import STYLE
from harness.pictures import drawing
from harness.pictures.ablation import ABLATION, ablation_table
from harness.pictures.data import FINDINGS, TABLES, stored_scores
from harness.pictures.net_benefit import net_benefit_table
from harness.pictures.stress import STRESS, stress_table
from harness.stored import Summary

PAGE, SUMMARY = "index.html", "summary.json"


@dataclass(frozen=True)
class Picture:
    """One picture: its heading, how to read it, and what draws its table."""

    title: str
    about: str
    draw: Callable[[pd.DataFrame], Any]


PICTURES: dict[str, Picture] = {
    "confusion": Picture(
        "What was blamed for what",
        "Rows are what is true, columns what was blamed; numbers count faults, and false findings"
        " on other cases. Brackets: nothing was blamed.",
        drawing.confusion,
    ),
    "reliability": Picture(
        "Reliability",
        "Findings by tenths of confidence, larger where there are more of them. Below the line:"
        " too sure.",
        drawing.reliability,
    ),
    "risk_coverage": Picture(
        "Risk and coverage",
        "From left to right less sure answers are kept, too. AUGRC is the area below, level"
        " from the last point on.",
        drawing.risk_coverage,
    ),
    "net_benefit": Picture(
        "Net benefit",
        "Findings that are not worth acting on at w are dropped first. Silence is worth 0.",
        drawing.net_benefit,
    ),
    "recall_by_cost": Picture(
        "Recall against cost",
        "Each point stands for about as many faults; their lost fractions are in its hover text.",
        drawing.recall_by_cost,
    ),
    "ablation": Picture(
        "What each signal buys",
        "Recall lost when a signal alone is withheld, and recall when it alone is left.",
        drawing.ablation,
    ),
    "stress": Picture(
        "As recordings get worse",
        "Over the cases that each degradation can do anything to, from as recorded to severe.",
        drawing.stress,
    ),
}


def tables_of(results: Path) -> dict[str, pd.DataFrame]:
    """Return the tables of all pictures that a results folder has data for.

    Raises:
        InputError: it has none.
    """
    tables: dict[str, pd.DataFrame] = {}
    if (results / FINDINGS).is_file():
        scores = stored_scores(results)
        tables |= {name: make(scores) for name, make in TABLES.items()}
    if (results / SUMMARY).is_file():
        tables["net_benefit"] = net_benefit_table(read_record(results / SUMMARY, Summary))
    for name, file, make in (
        ("ablation", ABLATION, ablation_table),
        ("stress", STRESS, stress_table),
    ):
        if (results / file).is_file():
            tables[name] = make(read_json(results / file))
    if not tables:
        must = f"must hold one of {FINDINGS}, {SUMMARY}, {ABLATION}, {STRESS}"
        raise InputError(must, where=results)
    return {name: tables[name] for name in PICTURES if name in tables}


def write_tables(folder: Path, results: Path) -> dict[str, pd.DataFrame]:
    """Write each picture's data as `<picture>.csv` and return it."""
    tables = tables_of(results)
    for name, table in tables.items():
        write_bytes(folder / f"{name}.csv", table.to_csv(index=False).encode())
    return tables


def write_page(folder: Path, title: str, results: Path) -> Path:
    """Write all pictures of a results folder as one page that needs no network.

    Args:
        folder: Where the page and its data go.
        title: Of the page.
        results: The results folder.

    Raises:
        InputError: there is nothing to draw, or plotly is not installed.
    """
    drawing.graph_objects()
    tables = write_tables(folder, results)
    sections = [
        _section(name, table, first=not i) for i, (name, table) in enumerate(tables.items())
    ]
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n" + "\n".join(sections) + "\n</body>\n</html>\n"
    )
    write_bytes(folder / PAGE, page.encode())
    return folder / PAGE


def write_pictures(folder: Path, title: str, results: Path) -> None:
    """Write the page where plotly is installed, and the data of its pictures in any case."""
    if importlib.util.find_spec("plotly"):
        write_page(folder, title, results)
    else:
        write_tables(folder, results)


def _section(name: str, table: pd.DataFrame, first: bool) -> str:
    """Return one picture with its table; the first one brings plotly's own code along."""
    from plotly.io import to_html

    picture = PICTURES[name]
    drawn = to_html(
        picture.draw(table), full_html=False, include_plotlyjs=first, div_id=f"picture-{name}"
    )
    rows = table.to_html(index=False, float_format="{:.4g}".format, na_rep="", border=0)
    return (
        f'<section id="{name}">\n<h2>{escape(picture.title)}</h2>\n<p>{escape(picture.about)}</p>\n'
        f'{drawn}\n<details><summary>Data (<a href="{name}.csv">{name}.csv</a>)</summary>\n{rows}\n'
        "</details>\n</section>"
    )
