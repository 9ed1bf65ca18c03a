"""How few neurons carry how much: the strongest of one layer added up, and every layer beside the others."""

from typing import Any

import numpy as np

from components.copy import words
from components.drawing import Drawing, drawing
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.answers.feed_forward import FeedForward


def curve_figure(found: FeedForward, height: int) -> Drawing:
    """Share of the squared pushes by number of strongest neurons, on a logarithmic axis, with the half marked."""
    say, own = words("feed_forward"), found.sparsity
    hovers = [
        say.text("hover_curve", count=int(count), neurons=own.neurons, share=float(share))
        for count, share in zip(found.curve_counts, found.curve_shares, strict=True)
    ]
    half = [
        {
            "x": float(np.log10(max(own.half, 1))),
            "y": float(np.interp(own.half, found.curve_counts, found.curve_shares)),
            "text": say.text("half_mark", half=own.half),
            "showarrow": True,
            "arrowhead": 0,
            "arrowcolor": "var(--faint)",
            "ax": 44,
            "ay": 22,
            "font": {"color": "var(--accent-text)", "size": 12},
        }
    ]
    return drawing(
        height,
        [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": found.curve_counts.tolist(),
                "y": [round(float(share), 4) for share in found.curve_shares],
                "line": {"color": "var(--s4)", "width": 2},
                "marker": {"color": "var(--s4)", "size": 4},
                "hovertext": hovers,
                "hoverinfo": "text",
            }
        ],
        annotations=half,
        margin={"l": 50, "r": 12, "t": 10, "b": 40},
        xaxis={"title": {"text": say.text("axis_strongest")}, "type": "log", "dtick": 1, "tickformat": ",d"},
        yaxis={"title": {"text": say.text("axis_share")}, "range": [0, 1.03], "tickformat": ".0%"},
    )


def layers_figure(found: FeedForward, height: int) -> Drawing:
    """One bar a layer: how many of its neurons carry half, in per cent; a click chooses the layer."""
    say = words("feed_forward")
    shown = [(layer, one) for layer, one in enumerate(found.by_layer) if one is not None]
    return drawing(
        height,
        [
            {
                "type": "bar",
                "x": [layer for layer, _ in shown],
                "y": [round(100 * one.half / one.neurons, 3) for _, one in shown],
                "marker": {"color": ["var(--accent)" if layer == found.layer else "var(--s4)" for layer, _ in shown]},
                "customdata": [{"layer": layer} for layer, _ in shown],
                "hovertext": [
                    say.text(
                        "hover_layer",
                        layer=layer,
                        half=one.half,
                        neurons=one.neurons,
                        clear=one.clear,
                        positive=one.positive,
                    )
                    for layer, one in shown
                ],
                "hoverinfo": "text",
            }
        ],
        margin={"l": 50, "r": 12, "t": 10, "b": 36},
        xaxis={
            "title": {"text": say.text("axis_layer")},
            "dtick": 5 if len(found.by_layer) > 12 else 1,
            "showgrid": False,
        },
        yaxis={"title": {"text": say.text("axis_half")}, "rangemode": "tozero"},
    )


def layers_numbers(found: FeedForward) -> dict[str, Any]:
    """The bars as a table, with the two other counts; a chosen line chooses the layer."""
    say = words("feed_forward")
    columns = [Column(say.text(key), align="right") for key in ("col_layer", "col_half", "col_clear", "col_positive")]
    rows: list[list[Cell | str]] = [
        [str(layer), Cell(say.text("no_neurons"), tone="dim"), "", ""]
        if one is None
        else [str(layer), f"{one.half:,}", f"{one.clear:,}", f"{one.positive:,}"]
        for layer, one in enumerate(found.by_layer)
    ]
    keys = [{"layer": layer} for layer in range(len(rows))]
    return table.value(columns, rows, key=keys, selected=found.layer)
