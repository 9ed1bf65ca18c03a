"""Learned positions: how long the row of each position is, and which positions have rows alike."""

from typing import Any

from components.copy import words
from components.drawing import Drawing, drawing
from components.embedding.told import column_keys, told_note
from components.panel import View
from components.widgets import heatmap, token_strip
from components.widgets.token_strip import Group
from engine.answers.positions import Positions


def learned_note(found: Positions) -> dict[str, Any]:
    """The row of the position in sight beside that of its token."""
    text = words("embedding").text(
        "learned_said",
        count=found.count,
        position=found.told,
        norm=found.norm,
        token_norm=found.token_norm,
        cosine=found.cosine,
        sum_norm=found.sum_norm,
    )
    return token_strip.value([*told_note(found), Group([], note=text, as_text=True)])


def learned_figure(found: Positions, height: int) -> Drawing:
    """The norm of every learned position."""
    say = words("embedding")
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": found.curve.tolist(),
        "y": [float(f"{norm:.4g}") for norm in found.norms],
        "line": {"color": "var(--s3)", "width": 1.6},
        "name": say.text("axis_norm"),
    }
    here = {
        "type": "scatter",
        "mode": "markers",
        "x": [found.told],
        "y": [float(f"{found.norm:.4g}")],
        "marker": {"color": "var(--accent)", "size": 9},
        "name": say.text("here"),
    }
    return drawing(
        height,
        [line, here],
        margin={"l": 50, "r": 12, "t": 28, "b": 36},
        showlegend=True,
        xaxis={"title": {"text": say.text("axis_position")}},
        yaxis={"title": {"text": say.text("axis_norm")}, "rangemode": "tozero"},
    )


def learned_map(found: Positions, view: View) -> dict[str, Any]:
    """How alike the rows of any two positions are; a click moves the cursor where the text has that position."""
    places = found.places.tolist()
    labels = [str(at) for at in places]
    here = places.index(found.told)
    return heatmap.value(
        found.cosines,
        x=labels,
        y=labels,
        label=words("embedding").text("learned_map_label", shown=len(places), count=found.count),
        low=min(0.0, float(found.cosines.min())),
        high=1.0,
        unit=words("embedding").text("unit_cosine"),
        selected=(here, here),
        column_keys=column_keys(found, view, places),
    )
