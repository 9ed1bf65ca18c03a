"""All heads: one figure of each on a map of the model, and those of one layer with their weights, kinds and figures."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from components.attention.seen import head_names, place
from components.copy import words
from components.panel import FIGURES, Cursor
from components.units import probability_text
from components.widgets import heatmap, table
from components.widgets.table import Cell, Column
from engine.answers.attention import AttentionAt

#: Positions beside each other in the picture of a layer's heads: the first one and the newest.
MAX_COLUMNS = 256


def figures_value(seen: AttentionAt, chosen: str) -> dict[str, Any]:
    """The figures that the map can show, of the selected head, its layer and the whole model."""
    say = words("attention")
    columns = [
        Column(say.text("col_figure")),
        Column(say.text("col_this_head"), align="right"),
        Column(say.text("col_layer", layer=seen.layer), align="right"),
        Column(say.text("col_model"), align="right"),
    ]
    rows: list[list[Cell | str]] = []
    for name in FIGURES:
        values = getattr(seen.figures, name)
        three = (values[seen.layer, seen.head], values[seen.layer].mean(), values.mean())
        rows.append([say.text(f"figure_{name}"), *(_number(name, float(value)) for value in three)])
    keys = [{"figure": name} for name in FIGURES]
    return table.value(columns, rows, selected=FIGURES.index(chosen), key=keys, caption=say.text("figures_said"))


def map_value(seen: AttentionAt, cursor: Cursor) -> dict[str, Any]:
    """One figure of every head: rows are heads, columns layers."""
    say = words("attention")
    matrix = getattr(seen.figures, cursor.figure).T
    heads, layers = matrix.shape
    entropy = cursor.figure == "entropy"
    return heatmap.value(
        matrix,
        x=[say.text("layer", layer=layer) for layer in range(layers)],
        y=head_names(heads, len(seen.group)),
        label=say.text("map_label", figure=say.text(f"figure_{cursor.figure}"), heads=heads, layers=layers),
        low=0.0,
        high=float(np.log(max(seen.position + 1, 2))) if entropy else 1.0,
        unit=say.text("nats") if entropy else "",
        selected=(seen.head, seen.layer),
        keys={"head": ("row", 0), "layer": ("column", 0)},
        band=len(seen.group) if len(seen.group) > 1 else 0,
    )


def shown_columns(seen: AttentionAt) -> list[int]:
    """Columns of the layer's weights that the picture has room for: the first, and the newest."""
    columns = seen.weights.shape[1]
    if columns <= MAX_COLUMNS:
        return list(range(columns))
    return [0, *range(columns - MAX_COLUMNS + 1, columns)]


def weights_value(seen: AttentionAt, tokens: Sequence[bytes]) -> dict[str, Any]:
    """The weights of all heads of the layer: rows are heads, columns the positions looked at."""
    say = words("attention")
    columns = shown_columns(seen)
    hidden = np.array([reason is not None for reason in seen.moves.hidden_by])
    weights = np.where(hidden, np.nan, seen.weights)[:, columns]
    return heatmap.value(
        weights,
        x=[place(seen.first + column, tokens) for column in columns],
        y=head_names(len(weights), len(seen.group)),
        label=say.text("weights_label", layer=seen.layer, position=seen.position),
        low=0.0,
        high=float(np.nanmax(weights)),
        selected=(seen.head, int(np.nanargmax(weights[seen.head]))),
        keys={"head": ("row", 0)},
        root=True,
        band=len(seen.group) if len(seen.group) > 1 else 0,
    )


def kinds_value(seen: AttentionAt) -> dict[str, Any]:
    """Each head of the layer, its kind and the figures that decided it."""
    say = words("attention")
    columns = [
        Column(say.text("col_head"), align="right"),
        Column(say.text("col_kv"), align="right", help=say.text("help_kv")),
        Column(say.text("col_kind"), help=say.text("help_kind")),
        Column(say.text("col_evenness"), align="right", help=say.text("help_evenness")),
        *(Column(say.text(f"col_{name}"), align="right") for name in ("self", "first", "previous")),
        Column(say.text("col_elsewhere"), align="right"),
        Column(say.text("col_entropy"), align="right"),
    ]
    figures, layer = seen.figures, seen.layer
    shares = (figures.evenness, figures.on_self, figures.on_first, figures.on_previous, figures.elsewhere)
    rows: list[list[Cell | str]] = [
        [
            str(head),
            str(head // len(seen.group)),
            say.text(f"kind_{kind}"),
            *(_share(float(values[layer, head])) for values in shares),
            f"{figures.entropy[layer, head]:.2f}",
        ]
        for head, kind in enumerate(seen.kinds[layer])
    ]
    keys = [{"head": head} for head in range(len(rows))]
    return table.value(columns, rows, selected=seen.head, key=keys, caption=say.text("kinds_said"))


def _share(value: float) -> Cell:
    return Cell(probability_text(value), bar=min(max(value, 0.0), 1.0))


def _number(name: str, value: float) -> Cell | str:
    return words("attention").text("entropy", entropy=value) if name == "entropy" else probability_text(value)
