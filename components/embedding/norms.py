"""The norm of each position's row: the same token has the same row, wherever it stands."""

from typing import Any

from components.copy import sentences, words
from components.drawing import Drawing, drawing
from components.inside import key_at
from components.panel import View
from components.visible import visible_bytes
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.answers.embedding import Embedding


def norms_figure(found: Embedding, view: View, height: int) -> Drawing:
    """One bar a position, the one in sight in the accent; the line is the median of the whole table."""
    say = words("embedding")
    places = found.positions.tolist()
    ends = [places[0] - 0.5, places[-1] + 0.5]
    bars = {
        "type": "bar",
        "x": places,
        "y": [round(float(norm), 4) for norm in found.position_norms],
        "marker": {"color": ["var(--accent)" if at == found.position else "var(--s1)" for at in places]},
        "customdata": [key_at(view, at) for at in places],
        "hovertext": [
            say.text("hover_position", position=at, token=visible_bytes(data), norm=float(norm))
            for at, data, norm in zip(places, found.position_bytes, found.position_norms, strict=True)
        ],
        "hoverinfo": "text",
        "name": say.text("norm_of_row"),
    }
    median = {
        "type": "scatter",
        "mode": "lines",
        "x": ends,
        "y": [round(found.median, 4)] * 2,
        "line": {"color": "var(--dim)", "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
        "name": say.text("median_line"),
    }
    return drawing(
        height,
        [bars, median],
        margin={"l": 44, "r": 12, "t": 28, "b": 36},
        showlegend=True,
        xaxis={"title": {"text": say.text("axis_position")}, "range": ends, "showgrid": False},
        yaxis={"title": {"text": say.text("axis_norm")}, "rangemode": "tozero"},
    )


def norms_numbers(found: Embedding, view: View) -> dict[str, Any]:
    """The bars as a table; a row leads to its position if that was fed."""
    say = words("embedding")
    columns = [
        Column(say.text("col_position"), align="right"),
        Column(say.text("col_token"), mono=True),
        Column(say.text("col_norm"), align="right"),
    ]
    rows: list[list[Cell | str]] = [
        [str(at), visible_bytes(data), f"{norm:.3f}"]
        for at, data, norm in zip(found.positions.tolist(), found.position_bytes, found.position_norms, strict=True)
    ]
    first, last = int(found.positions[0]), int(found.positions[-1])
    keys = [key_at(view, at) for at in found.positions.tolist()]
    caption = sentences(
        say.text("norms_caption", first=first, last=last, length=found.length),
        "" if keys[-1] else say.text("norms_unfed"),
    )
    return table.value(columns, rows, caption=caption, key=keys, selected=found.position - first)
