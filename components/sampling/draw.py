"""The draw: the survivors laid end to end on the cumulative line, and the uniform number that picks one."""

from dataclasses import dataclass
from typing import Any

from components.copy import words
from components.drawing import Drawing, drawing
from components.sampling.candidates import SHOWN_SURVIVORS, surviving, token_label
from components.units import probability_text
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.trace import Stepped

HEIGHT = 84
COLORS = tuple(f"var(--s{number})" for number in range(1, 9))


@dataclass(frozen=True)
class Interval:
    """A token's stretch [low, high) of the cumulative line; `token_id` None stands for all tokens not followed."""

    token_id: int | None
    label: str
    low: float
    high: float


def intervals(step: Stepped) -> list[Interval]:
    """Tiles of [0, 1]: the likeliest survivors one by one, the drawn token, and what lies between as one stretch."""
    tiles: list[Interval] = []
    end = 0.0
    for index in _named(step):
        token_id = int(step.candidate_ids[index])
        low, high = end, min(1.0, end + float(step.probabilities[-1, index]))
        if step.draw and token_id == step.draw.drawn_id:
            # The engine's own numbers: summed over the whole vocabulary, so also right for a token far down the line.
            low, high = step.draw.low, step.draw.high
        if low - end > 1e-4:
            tiles.append(_rest(end, low))
        elif tiles:
            low = end
        tiles.append(Interval(token_id, token_label(step.candidate_bytes[index]), low, max(low, high)))
        end = tiles[-1].high
    if 1 - end > 1e-4:
        tiles.append(_rest(end, 1.0))
    elif tiles:
        tiles[-1] = Interval(tiles[-1].token_id, tiles[-1].label, tiles[-1].low, 1.0)
    return tiles


def _named(step: Stepped) -> list[int]:
    """Survivors with an interval of their own, in the order of the line."""
    # Of equally likely tokens the lower id comes first, as in the engine.
    order = sorted(surviving(step), key=lambda i: (-step.probabilities[-1, i], step.candidate_ids[i]))
    drawn = step.draw.drawn_id if step.draw else step.token_id
    return [i for place, i in enumerate(order) if place < SHOWN_SURVIVORS or step.candidate_ids[i] == drawn]


def _rest(low: float, high: float) -> Interval:
    return Interval(None, words("sampling").text("rest"), low, high)


def draw_figure(step: Stepped) -> Drawing:
    """One bar cut into the intervals, the drawn one in accent, u as a line through it; a click gives the token id."""
    tiles = intervals(step)
    drawn = step.draw.drawn_id if step.draw else step.token_id
    bar = {
        "type": "bar",
        "orientation": "h",
        "base": [tile.low for tile in tiles],
        "x": [tile.high - tile.low for tile in tiles],
        "y": [0] * len(tiles),
        "text": [tile.label for tile in tiles],
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "textfont": {"size": 12, "color": ["var(--ink)" if tile.token_id is None else "var(--pane)" for tile in tiles]},
        "hovertext": [_hover(tile) for tile in tiles],
        "hoverinfo": "text",
        "marker": {
            "color": [_color(tile, place, drawn) for place, tile in enumerate(tiles)],
            "line": {"color": "var(--pane)", "width": 1},
        },
        "customdata": [None if tile.token_id is None else {"token_id": tile.token_id} for tile in tiles],
    }
    return drawing(
        HEIGHT,
        [bar],
        margin={"l": 2, "r": 2, "t": 4, "b": 42},
        xaxis={"range": [0, 1], "fixedrange": True, "showgrid": False, "tickvals": [0, 0.25, 0.5, 0.75, 1]},
        yaxis={"visible": False, "fixedrange": True, "range": [-0.5, 0.5]},
        barmode="overlay",
        bargap=0,
        dragmode=False,
        uniformtext={"mode": "hide", "minsize": 11},
        **(_mark_of_u(step) if step.draw else {}),
    )


def interval_numbers(step: Stepped) -> dict[str, Any]:
    """The intervals as a table."""
    say = words("sampling")
    columns = [
        Column(say.text("col_token"), mono=True),
        Column(say.text("col_from"), align="right"),
        Column(say.text("col_to"), align="right"),
        Column(say.text("col_width"), align="right"),
    ]
    tiles = intervals(step)
    drawn = step.draw.drawn_id if step.draw else step.token_id
    rows: list[list[Cell | str]] = [
        [
            Cell(tile.label, tone="accent" if tile.token_id == drawn else "dim" if tile.token_id is None else ""),
            f"{tile.low:.4f}",
            f"{tile.high:.4f}",
            f"{tile.high - tile.low:.4f}",
        ]
        for tile in tiles
    ]
    return table.value(columns, rows)


def _hover(tile: Interval) -> str:
    text = words("sampling").text("interval", label=tile.label, low=tile.low, high=tile.high)
    return f"{text}  p {probability_text(tile.high - tile.low)}"


def _color(tile: Interval, place: int, drawn: int) -> str:
    if tile.token_id == drawn:
        return "var(--accent)"
    return "var(--cut)" if tile.token_id is None else COLORS[place % len(COLORS)]


def _mark_of_u(step: Stepped) -> dict[str, Any]:
    """A light line through the bar and a lead down to the words, which stay inside the chart at either end."""
    assert step.draw is not None
    u = step.draw.u
    drawn = step.candidate_ids == step.draw.drawn_id
    token = token_label(step.candidate_bytes[int(drawn.argmax())]) if drawn.any() else str(step.draw.drawn_id)
    words_below = {
        "x": u,
        "y": -0.5,
        "ax": 0,
        "ay": 32,
        "text": words("sampling").text("u", u=u, token=token),
        "xanchor": "left" if u < 0.3 else "right" if u > 0.7 else "center",
        "arrowhead": 0,
        "arrowwidth": 2,
        "arrowcolor": "var(--accent)",
        "font": {"size": 11, "color": "var(--accent-text)", "weight": 600},
    }
    through = {"type": "line", "x0": u, "x1": u, "y0": -0.5, "y1": 0.5, "line": {"color": "var(--pane)", "width": 2}}
    return {"shapes": [through], "annotations": [words_below]}
