"""How long the stream is after every layer, how long what each part adds, and which way it points."""

from collections.abc import Sequence
from typing import Any

from components.copy import words
from components.drawing import Drawing, drawing
from components.residual.shares import ATTENTION, FEED_FORWARD
from components.widgets import table, token_strip
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Group
from engine.answers.residual import Residual

#: A stream this many times as long as the final norm leaves it is called massive.
MASSIVE = 100


def stream_note(residual: Residual) -> dict[str, Any]:
    """First, longest and last norm, what the final norm makes of it, and the massive first position explained."""
    say = words("residual")
    longest = int(residual.norms.argmax())
    numbers = {"first": residual.norms[0], "last": residual.norms[-1], "normed": residual.normed_norm}
    notes = [
        Group([], note=say.text("stream_said", longest=residual.norms[longest], row=longest, **numbers), as_text=True)
    ]
    if residual.norms[longest] > MASSIVE * residual.normed_norm:
        massive = say.text("massive_said" if residual.position == 0 else "massive_elsewhere", row=longest)
        notes.append(Group([], label=say.text("massive"), note=massive, as_text=True))
    return token_strip.value(notes)


def stream_figure(residual: Residual, height: int) -> Drawing:
    """Three lines on a logarithmic axis: the stream by row, what attention and feed-forward add by layer."""
    say = words("residual")
    layers = list(range(len(residual.attention_norms)))
    middles = [layer + 0.5 for layer in layers]
    shown = (
        ("stream_line", [*layers, len(layers)], residual.norms, "var(--ink)", None),
        ("attention", middles, residual.attention_norms, ATTENTION, residual.attention_cosines),
        ("feed_forward", middles, residual.feed_forward_norms, FEED_FORWARD, residual.feed_forward_cosines),
    )
    return drawing(
        height,
        [_line(name, x, norms, color, cosines) for name, x, norms, color, cosines in shown],
        margin={"l": 50, "r": 12, "t": 28, "b": 36},
        showlegend=True,
        xaxis={"title": {"text": say.text("axis_row")}, "dtick": 5 if len(layers) > 12 else 1},
        yaxis={"title": {"text": say.text("axis_norm")}, "type": "log", "dtick": 1, "tickformat": ",d"},
    )


def _line(name: str, x: Sequence[float], norms: Any, color: str, cosines: Any) -> dict[str, Any]:
    say = words("residual")
    hovers = [
        say.text("hover_norm", row=place, norm=float(norm))
        if cosines is None
        else say.text("hover_added", part=say.text(name), layer=index, norm=float(norm), cosine=float(cosines[index]))
        for index, (place, norm) in enumerate(zip(x, norms, strict=True))
    ]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(x),
        "y": [float(f"{norm:.5g}") for norm in norms],
        "name": say.text(name),
        "line": {"color": color, "width": 2.4 if cosines is None else 1.4},
        "marker": {"color": color, "size": 5 if cosines is None else 4},
        "hovertext": hovers,
        "hoverinfo": "text",
    }


def stream_numbers(residual: Residual) -> dict[str, Any]:
    """One layer a line: the stream before it, what it adds with the angle to the stream, how alike the next row is."""
    say = words("residual")
    keys = ("col_layer", "col_norm", "col_attention", "col_cosine", "col_feed_forward", "col_cosine", "col_next")
    columns = [Column(say.text(key), align="right") for key in keys[:-1]]
    columns.append(Column(say.text(keys[-1]), align="right", help=say.text("help_next")))
    rows: list[list[Cell | str]] = [
        [
            str(layer),
            f"{residual.norms[layer]:.1f}",
            f"{residual.attention_norms[layer]:.1f}",
            f"{residual.attention_cosines[layer]:+.2f}",
            f"{residual.feed_forward_norms[layer]:.1f}",
            f"{residual.feed_forward_cosines[layer]:+.2f}",
            f"{residual.cosines[layer, layer + 1]:.3f}",
        ]
        for layer in range(len(residual.attention_norms))
    ]
    rows.append([Cell(say.text("row_end"), tone="dim"), f"{residual.norms[-1]:.1f}", "", "", "", "", ""])
    rows.append([Cell(say.text("row_normed"), tone="dim"), f"{residual.normed_norm:.1f}", "", "", "", "", ""])
    return table.value(columns, rows)
