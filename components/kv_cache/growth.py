"""How the KV cache grows: its bytes over the positions that were fed, by where each position came from."""

from dataclasses import dataclass
from typing import Any, Literal

from components.copy import words
from components.drawing import Drawing, drawing
from components.panel import View
from components.units import BINARY_UNITS, bytes_text
from components.widgets import table
from components.widgets.table import Column
from engine.facts import ModelFacts
from engine.trace import Stepped

HEIGHT = 230
NUMBER_COLUMNS = ("col_positions", "col_bytes_added", "col_bytes_after")
COLORS = {"reused": "var(--cut)", "computed": "var(--s3)", "sampled": "var(--assistant)"}


@dataclass(frozen=True)
class Part:
    """Positions of one origin: what the cache held after each of `fed` positions, the part's own ends included.

    In a sliding window, or where a run keeps no cache, fewer positions are held than were fed.
    """

    origin: Literal["reused", "computed", "sampled"]
    fed: tuple[int, ...]
    held: tuple[int, ...]
    bytes_held: tuple[int, ...]

    @property
    def positions(self) -> int:
        return self.fed[-1] - self.fed[0]


def select(view: View) -> list[Part]:
    """The parts of the selected turn; a part without a position is left out.

    Bytes are measured wherever the trace has them, and by formula inside the prompt, which one forward computes whole.
    """
    trace, rendered = view.trace, view.rendered
    prefilled = trace.prefilled(view.cursor.turn) if trace else None
    if rendered is None or prefilled is None:
        return []
    prompt, later = prefilled.last + 1, view.steps[1:]
    parts = [
        _prompt_part("reused", 0, prefilled.first, view.facts),
        _prompt_part("computed", prefilled.first, prompt, view.facts, measured=prefilled.kv_bytes),
        Part(
            "sampled",
            (prompt, *(step.position for step in later)),
            (prefilled.kv_tokens, *(step.kv_tokens for step in later)),
            (prefilled.kv_bytes, *(step.kv_bytes for step in later)),
        ),
    ]
    return [part for part in parts if part.positions > 0]


def _prompt_part(
    origin: Literal["reused", "computed"], first: int, last: int, facts: ModelFacts, *, measured: int | None = None
) -> Part:
    # A sliding layer is full at window − 1 positions: there the line bends.
    bend = [facts.sliding_window - 1] if facts.sliding_window else []
    fed = (first, *(place for place in bend if first < place < last), last)
    sizes = [facts.kv_bytes(count) for count in fed]
    if measured is not None:
        sizes[-1] = measured
    return Part(origin, fed, fed, tuple(sizes))


def growth_figure(view: View, step: Stepped) -> Drawing:
    """Areas from left to right: reused, computed and sampled positions; a line at the selected step."""
    say = words("kv_cache")
    parts = select(view)
    unit, name = _unit(max((size for part in parts for size in part.bytes_held), default=0))
    return drawing(
        HEIGHT,
        [_area(part, unit) for part in parts],
        margin={"l": 52, "r": 14, "t": 26, "b": 36},
        xaxis={"title": {"text": say.text("axis_positions")}, "rangemode": "tozero", "showgrid": False},
        yaxis={"title": {"text": name}, "rangemode": "tozero", "nticks": 5},
        showlegend=True,
        hovermode="x",
        **_mark(step, unit),
    )


def _area(part: Part, unit: int) -> dict[str, Any]:
    say, color = words("kv_cache"), COLORS[part.origin]
    area: dict[str, Any] = {
        "type": "scatter",
        "x": list(part.fed),
        "y": [round(size / unit, 6) for size in part.bytes_held],
        "mode": "lines",
        "line": {"color": color, "width": 2},
        "fill": "tozeroy",
        "name": say.text(f"part_{part.origin}", count=part.positions),
        "hovertext": [
            say.text("hover", tokens=held, size=bytes_text(size))
            for held, size in zip(part.held, part.bytes_held, strict=True)
        ],
        "hoverinfo": "text",
    }
    if part.origin == "sampled":
        area |= {
            "mode": "lines+markers",
            "marker": {"size": 3.5, "color": color},
            "customdata": [{"position": fed} for fed in part.fed],
        }
    return area


def growth_numbers(view: View) -> dict[str, Any]:
    """The chart as a table: one row a part."""
    say = words("kv_cache")
    columns = [Column(say.text("col_part")), *(Column(say.text(key), align="right") for key in NUMBER_COLUMNS)]
    rows = [
        [
            say.text(f"part_{part.origin}", count=part.positions),
            f"{part.fed[0]}–{part.fed[-1] - 1}",
            f"{part.bytes_held[-1] - part.bytes_held[0]:,}",
            f"{part.bytes_held[-1]:,}",
        ]
        for part in select(view)
    ]
    return table.value(columns, rows)


def _unit(most: int) -> tuple[int, str]:
    """The greatest unit in which the number is at least 1, and its name."""
    power = 0
    while most >= 1024 ** (power + 1) and power < len(BINARY_UNITS) - 1:
        power += 1
    return 1024**power, BINARY_UNITS[power]


def _mark(step: Stepped, unit: int) -> dict[str, Any]:
    """A line at the selected step, and what the cache held there."""
    return {
        "shapes": [
            {
                "type": "line", "x0": step.position, "x1": step.position, "y0": 0, "y1": 1, "yref": "paper",
                "line": {"color": "var(--accent)", "width": 1},
            }
        ],
        "annotations": [
            {
                "x": step.position,
                "y": step.kv_bytes / unit,
                "text": words("kv_cache").text("mark", tokens=step.kv_tokens, size=bytes_text(step.kv_bytes)),
                "showarrow": False,
                "xanchor": "right",
                "yanchor": "bottom",
                "xshift": -5,
                "font": {"color": "var(--accent-text)", "size": 11},
            }
        ],
    }  # fmt: skip
