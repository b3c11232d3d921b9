"""Tables drawn by plotly, which is imported only here and only when something is drawn."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cases.errors import InputError

BLUE, ORANGE, GREEN, GREY = "#1f77b4", "#d95f02", "#2a9d5c", "#888888"
COLOURS = {"recall": BLUE, "misled": ORANGE, "abstained": GREY, "failed": "#444444"}
ROW_PX, LEAST_PX = 22, 420
SHARE = {"range": [-0.02, 1.02], "title": ""}


def graph_objects() -> Any:
    """Return plotly's module of figures.

    Raises:
        InputError: plotly is not installed; says which extra brings it.
    """
    try:
        import plotly.graph_objects as go
    except ModuleNotFoundError as error:
        must = f"must be installed to draw pictures (pip install 'evalharness[plots]'): {error}"
        raise InputError(must, where="plotly") from None
    return go


def confusion(table: pd.DataFrame) -> Any:
    """Heatmap of true cause x blamed cause; the kinds of a cell stand in its hover text."""
    go = graph_objects()
    counts = table.pivot_table("count", "true", "blamed", aggfunc="sum", fill_value=0)
    kinds = table.assign(
        told=table["count"].astype(str) + " " + table["kind"].astype(str)
    ).pivot_table("told", "true", "blamed", aggfunc=", ".join)
    rows, columns = _order(counts.index), _order(counts.columns)
    counts = counts.reindex(index=rows, columns=columns)
    told = kinds.reindex(index=rows, columns=columns).fillna("")
    share = counts.div(counts.sum(axis=1), axis=0)
    figure = go.Figure(
        go.Heatmap(
            z=share.to_numpy().tolist(),
            x=columns,
            y=rows,
            text=counts.astype(str).mask(counts == 0, "").to_numpy().tolist(),
            customdata=told.to_numpy().tolist(),
            texttemplate="%{text}",
            colorscale="Blues",
            zmin=0,
            zmax=1,
            colorbar={"title": "share of row"},
            hovertemplate="true: %{y}<br>blamed: %{x}<br>%{customdata}<extra></extra>",
        )
    )
    figure.update_yaxes(autorange="reversed", title="true")
    figure.update_xaxes(title="blamed", tickangle=45)
    return _sized(figure, ROW_PX * len(rows) + 300)


def reliability(table: pd.DataFrame) -> Any:
    """How often findings of each tenth of confidence are right, beside what they should be."""
    go = graph_objects()
    figure = go.Figure()
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", name="calibrated", line=_dashed())
    if len(table):
        figure.add_scatter(
            x=table["confidence"].tolist(),
            y=table["right"].tolist(),
            mode="lines+markers",
            name="findings",
            marker={"size": [6 + 2 * n**0.5 for n in table["n"]], "color": BLUE},
            error_y=_bars(table, "right", "right_low", "right_high"),
            customdata=table["n"].tolist(),
            hovertemplate="confidence %{x:.2f}, right %{y:.2f}, %{customdata} findings",
        )
    figure.update_xaxes(**SHARE | {"title": "confidence"})
    figure.update_yaxes(**SHARE | {"title": "right cause and place"})
    return _sized(figure)


def risk_coverage(table: pd.DataFrame) -> Any:
    """Share of all cases answered and wrong, against how many are answered, surest first."""
    go = graph_objects()
    figure = go.Figure()
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", name="always wrong", line=_dashed())
    figure.add_scatter(
        x=table["coverage"].tolist(),
        y=table["generalised_risk"].tolist(),
        mode="lines+markers",
        name="answers",
        line={"color": BLUE},
        customdata=table["confidence"].tolist(),
        hovertemplate="confidence from %{customdata:.2f}: %{x:.2f} answered, %{y:.2f} wrong",
    )
    figure.update_xaxes(**SHARE | {"title": "answered cases / all cases"})
    figure.update_yaxes(**SHARE | {"title": "answered and wrong / all cases"})
    return _sized(figure)


def net_benefit(table: pd.DataFrame) -> Any:
    """Net benefit over w in the reference mix, in the suite's own where that is all there is."""
    go = graph_objects()
    mixes = set(table["mix"])
    rows = table.loc[table["mix"] == ("reference" if "reference" in mixes else "own")]
    figure = go.Figure()
    for (floor, name), own in rows.groupby(["floor", "diagnoser"], sort=False):
        figure.add_scatter(
            x=own["w"].tolist(),
            y=own["value"].tolist(),
            mode="lines+markers",
            name=f"floor: {name}" if floor else str(name),
            line=_dashed() if floor else {"color": BLUE},
            opacity=0.6 if floor else 1.0,
            error_y=None if floor else _bars(own, "value", "low", "high"),
        )
    figure.update_xaxes(type="log", title="w: what a false finding costs, in found faults")
    figure.update_yaxes(title="net benefit")
    return _sized(figure)


def recall_by_cost(table: pd.DataFrame) -> Any:
    """Recall against what faults cost; a point for as many faults each."""
    go = graph_objects()
    figure = go.Figure()
    if len(table):
        figure.add_scatter(
            x=table["cost"].tolist(),
            y=table["recall"].tolist(),
            mode="lines+markers",
            line={"color": BLUE},
            error_y=_bars(table, "recall", "right_low", "right_high"),
            customdata=table[["low_cost", "high_cost", "faults"]].to_numpy().tolist(),
            hovertemplate="lost %{customdata[0]:.1%} to %{customdata[1]:.1%}:"
            " %{customdata[2]} faults, recall %{y:.2f}<extra></extra>",
        )
    figure.update_xaxes(type="log", title="lost fraction of wall time", tickformat=".0%")
    figure.update_yaxes(**SHARE | {"title": "recall, cause and place"})
    return _sized(figure)


def ablation(table: pd.DataFrame) -> Any:
    """Bars of the recall that each signal buys: lost when it is withheld, gained by it alone."""
    go = graph_objects()
    rows = table.loc[(table["effect"] == "recall") & (table["cause"] == "")]
    figure = go.Figure()
    names = {"withheld": "lost without it", "alone": "found by it alone"}
    for (kind, name), colour in zip(names.items(), (BLUE, GREY), strict=True):
        own = rows.loc[rows["kind"] == kind]
        figure.add_bar(
            y=own["signal"].tolist(),
            x=own["value"].tolist(),
            orientation="h",
            name=name,
            marker={"color": colour},
            error_x=_bars(own, "value", "low", "high"),
        )
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title="recall, cause and place")
    return _sized(figure, 2 * ROW_PX * (len(rows) // 2) + 160)


def stress(table: pd.DataFrame) -> Any:
    """Recall, misled and abstained against each degradation, side by side."""
    go = graph_objects()
    from plotly.subplots import make_subplots

    rows = table.loc[(table["cases"] > 0) & table["value"].notna()]
    names = list(dict.fromkeys(rows["degradation"]))
    if not names:
        return _sized(go.Figure())
    titles = [name.replace("_", " ") for name in names]
    figure = make_subplots(cols=2, rows=(len(names) + 1) // 2, subplot_titles=titles)
    for place, name in enumerate(names):
        for kind, own in rows.loc[rows["degradation"] == name].groupby("rate", sort=False):
            figure.add_scatter(
                x=own["shown"].tolist(),
                y=own["value"].tolist(),
                mode="lines+markers",
                name=str(kind),
                legendgroup=str(kind),
                showlegend=place == 0,
                line={"color": COLOURS[str(kind)]},
                error_y=_bars(own, "value", "low", "high"),
                row=place // 2 + 1,
                col=place % 2 + 1,
            )
    figure.update_yaxes(range=[-0.05, 1.05])
    return _sized(figure, 320 * ((len(names) + 1) // 2))


def _order(names: pd.Index[str]) -> list[str]:
    """Put causes first, then what is no cause: verdicts and buckets in brackets."""
    last = ("healthy", "undecidable")
    return sorted(map(str, names), key=lambda name: (name in last or name[:1] == "(", name))


def _bars(table: pd.DataFrame, value: str, low: str, high: str) -> dict[str, Any]:
    """Return error bars from bounds; none where there are no bounds."""
    middle = table[value].astype(float)
    up, down = table[high].astype(float) - middle, middle - table[low].astype(float)
    return {
        "type": "data",
        "symmetric": False,
        "array": up.clip(lower=0).fillna(0).tolist(),
        "arrayminus": down.clip(lower=0).fillna(0).tolist(),
        "thickness": 1,
    }


def _dashed() -> dict[str, Any]:
    return {"dash": "dash", "color": GREY}


def _sized(figure: Any, height_px: int = LEAST_PX) -> Any:
    return figure.update_layout(
        template="plotly_white", height=max(height_px, LEAST_PX), margin={"t": 40, "r": 20}
    )
