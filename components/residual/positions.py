"""Norms by position: how unlike they are before the final norm, and how alike after it."""

from typing import Any

import numpy as np

from components.copy import words
from components.drawing import Drawing, drawing
from components.inside import key_at, row_label
from components.panel import View
from components.visible import visible_bytes
from components.widgets import heatmap, table, token_strip
from components.widgets.table import Column
from components.widgets.token_strip import Group
from engine.answers.norms import Norms


def positions_note(norms: Norms | None) -> dict[str, Any]:
    """How far the norms of the positions lie apart on both sides of the final norm."""
    say = words("residual")
    if norms is None:
        return token_strip.value([Group([], note=say.text("positions_empty"), as_text=True)])
    before, after = norms.stream[-1], norms.normed
    text = say.text(
        "positions_said",
        low=before.min(),
        high=before.max(),
        times=before.max() / before.min(),
        normed_low=after.min(),
        normed_high=after.max(),
        normed_times=after.max() / after.min(),
    )
    return token_strip.value([Group([], note=text, as_text=True)])


def positions_figure(norms: Norms, view: View, height: int) -> Drawing:
    """Before and after the final norm, one point a position; a click moves the cursor there."""
    say = words("residual")
    places = list(range(len(norms.positions)))
    sides = (
        ("before_norm", norms.stream[-1], "var(--ink)"),
        ("after_norm", norms.normed, "var(--accent)"),
    )
    every = max(1, len(places) // 16)
    return drawing(
        height,
        [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": places,
                "y": [float(f"{norm:.5g}") for norm in values],
                "name": say.text(name),
                "line": {"color": color, "width": 1.8},
                "marker": {"color": color, "size": 5},
                "customdata": [key_at(view, int(at)) for at in norms.positions],
                "hovertext": [
                    say.text("hover_position", position=int(at), token=visible_bytes(data), norm=float(norm))
                    for at, data, norm in zip(norms.positions, norms.token_bytes, values, strict=True)
                ],
                "hoverinfo": "text",
            }
            for name, values, color in sides
        ],
        margin={"l": 50, "r": 12, "t": 28, "b": 40},
        showlegend=True,
        xaxis={
            "title": {"text": say.text("axis_position")},
            "tickvals": places[::every],
            "ticktext": [str(at) for at in norms.positions[::every]],
        },
        yaxis={"title": {"text": say.text("axis_norm")}, "type": "log", "dtick": 1, "tickformat": ",d"},
    )


def positions_map(norms: Norms, view: View) -> dict[str, Any]:
    """Rows × positions, the norm on a logarithmic scale; the first position stands out where it is massive."""
    rows, count = norms.stream.shape
    scale = np.log10(np.maximum(norms.stream, 1e-6))
    low, high = float(scale.min()), float(scale.max())
    positions = norms.positions.tolist()
    return heatmap.value(
        scale,
        x=[f"{at} {visible_bytes(data)}" for at, data in zip(positions, norms.token_bytes, strict=True)],
        y=[row_label(row, rows - 1) for row in range(rows)],
        label=words("residual").text("positions_map_label", rows=rows, columns=count),
        low=low,
        high=max(high, low + 1e-3),
        unit=words("residual").text("unit_log"),
        selected=(rows - 1, positions.index(view.fed_position)) if view.fed_position in positions else None,
        column_keys=[key_at(view, at) for at in positions],
    )


def positions_numbers(norms: Norms) -> dict[str, Any]:
    """The chart as a table, with the longest the stream was at each position."""
    say = words("residual")
    columns = [
        Column(say.text("col_position"), align="right"),
        Column(say.text("col_token"), mono=True),
        Column(say.text("col_longest"), align="right"),
        Column(say.text("before_norm"), align="right"),
        Column(say.text("after_norm"), align="right"),
    ]
    rows = [
        [str(int(at)), visible_bytes(data), f"{column.max():.1f}", f"{column[-1]:.1f}", f"{normed:.1f}"]
        for at, data, column, normed in zip(
            norms.positions, norms.token_bytes, norms.stream.T, norms.normed, strict=True
        )
    ]
    return table.value(columns, rows)
