"""Layers × positions: the best guess of every row at the last positions, its text in the cell."""

from typing import Any

from components.copy import words
from components.inside import bytes_at, key_at, row_label
from components.panel import View
from components.visible import visible_bytes
from components.widgets import heatmap, token_strip
from components.widgets.token_strip import Group
from engine.answers.lens_map import LensMap


def map_note(layer_map: LensMap | None) -> dict[str, Any]:
    """What the map shows, or that it waits to be asked for."""
    say = words("lens")
    if layer_map is None:
        return token_strip.value([Group([], note=say.text("map_empty"), as_text=True)])
    last = layer_map.first + len(layer_map.token_bytes) - 1
    note = say.text("map_said", first=layer_map.first, last=last, count=len(layer_map.token_bytes))
    return token_strip.value([Group([], note=note, as_text=True)])


def map_value(layer_map: LensMap, view: View) -> dict[str, Any]:
    """Coloured by the guess's probability; a click moves the cursor to the column's position."""
    say = words("lens")
    position = view.fed_position
    rows, count = layer_map.top_probabilities.shape
    columns = range(layer_map.first, layer_map.first + count)
    return heatmap.value(
        layer_map.top_probabilities,
        x=[f"{at} {visible_bytes(data)}" for at, data in zip(columns, layer_map.token_bytes, strict=True)],
        y=[row_label(row, rows - 1) for row in range(rows)],
        label=say.text("map_label", rows=rows, columns=count),
        low=0.0,
        high=1.0,
        selected=(rows - 1, position - layer_map.first) if position in columns and position is not None else None,
        texts=[[_cell(layer_map, view, row, column) for column in range(count)] for row in range(rows)],
        column_keys=[key_at(view, at) for at in columns],
    )


def _cell(layer_map: LensMap, view: View, row: int, column: int) -> str:
    """The guess; and for the read-out, where the token that really came stands."""
    guess = visible_bytes(layer_map.top_bytes[row][column])
    following = bytes_at(view, layer_map.first + column + 1)
    rank = int(layer_map.next_ranks[row, column])
    if following is None or not rank:
        return guess
    return f"{guess}\n{words('lens').text('map_next', token=visible_bytes(following), rank=rank)}"
