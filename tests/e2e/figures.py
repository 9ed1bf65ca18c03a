"""Figures for the pages of the widget tests, built with plotly's own classes, which check every property."""

import json
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from components.drawing import LAYOUT, MONO, SANS, Drawing

SERIES = tuple(f"var(--s{number})" for number in range(1, 9))


def base_figure(height: int, **layout: Any) -> go.Figure:
    """An empty figure of `height` pixels in the instrument's look; `layout` adds to it or overrides it, key by key."""
    return go.Figure(layout={"template": go.layout.Template(), "height": height, **LAYOUT}).update_layout(layout)


def plain(figure: go.Figure) -> Drawing:
    """The figure as the chart host takes it."""
    drawing: Drawing = json.loads(figure.to_json())
    del drawing["layout"]["template"]
    return drawing


def line(
    x: Sequence[Any],
    y: Sequence[Any],
    *,
    color: str = "var(--ink)",
    width: float = 1.5,
    name: str = "",
    **trace: Any,
) -> go.Scatter:
    """A line with a dot at each point; None in `y` ends it."""
    marker = {"size": 2 * width + 2, "color": color}
    style = {"color": color, "width": width}
    return go.Scatter(x=x, y=y, name=name, mode="lines+markers", line=style, marker=marker, **trace)


def bars(
    labels: Sequence[str],
    values: Sequence[float],
    *,
    color: str | Sequence[str] = "var(--s1)",
    **trace: Any,
) -> go.Bar:
    """Horizontal bars at y = 0, 1, … with their labels as the text inside or beside them (see `rows`)."""
    positions = list(range(len(labels)))
    return go.Bar(
        y=positions,
        x=values,
        orientation="h",
        hovertext=labels,
        marker={"color": color},
        **trace,
    )


def note(
    figure: go.Figure, x: float, y: float, text: str, color: str = "var(--dim)", *, side: str = "right"
) -> go.Figure:
    """Plain text beside the point (x, y), on its "right" or "left"."""
    anchor, shift = ("left", 9) if side == "right" else ("right", -9)
    font = {"color": color, "size": 12, "family": MONO}
    return figure.add_annotation(
        x=x, y=y, text=text, font=font, showarrow=False, xanchor=anchor, xshift=shift, align=anchor
    )


def columns(figure: go.Figure, titles: Sequence[str], notes: Sequence[str]) -> go.Figure:
    """Name the places 0, 1, … of the x axis above the plot, each with a smaller note, and draw a line down each."""
    for place, (title, small) in enumerate(zip(titles, notes, strict=True)):
        for text, shift, font in (
            (title, 22, {"family": SANS, "weight": 600, "color": "var(--ink)"}),
            (small, 6, {"size": 11, "color": "var(--dim)"}),
        ):
            figure.add_annotation(
                x=place, y=1, yref="paper", text=text, font=font, showarrow=False, yanchor="bottom", yshift=shift
            )
    last = len(titles) - 1
    return figure.update_xaxes(
        range=[-0.02, last + 0.02], tickmode="array", tickvals=list(range(last + 1)), showticklabels=False
    )


def spread(places: Sequence[float], gap: float) -> list[float]:
    """The same places, pushed upwards just enough that no two of them are nearer than `gap`; for labels of lines."""
    result = list(places)
    floor = float("-inf")
    for index in sorted(range(len(places)), key=lambda at: places[at]):
        result[index] = floor = max(places[index], floor + gap)
    return result


def ticks(figure: go.Figure, axis: str, labels: Sequence[str]) -> go.Figure:
    """Set the ticks of `axis` ("x" or "y") to 0, 1, … with these labels: equal labels never share a place."""
    places = {
        "tickmode": "array",
        "tickvals": list(range(len(labels))),
        "ticktext": list(labels),
    }
    return figure.update_layout({f"{axis}axis": places})
