"""Ranks and probabilities of the followed tokens over the rows of the stream, one line a token."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from components.copy import words
from components.drawing import Drawing, drawing
from components.spread import spread
from components.units import probability_text
from components.visible import visible_bytes
from engine.answers.lens import Lens

RANK_HEIGHT = 330
PROBABILITY_HEIGHT = 200
TOP, BOTTOM = 10, 36
LABEL_GAP = 14  # pixels between the middles of two labels
CHARACTER = 7.0  # pixels, of the mono font at 11
LONGEST = 14
RISEN = 0.01  # probability at the end from which a line is told of
ASKED_COLORS = ("var(--s3)", "var(--s2)", "var(--s5)", "var(--s4)", "var(--s6)")

Kind = Literal["next", "eos", "asked", "leader"]


@dataclass(frozen=True)
class Line:
    """A followed token: where it stands in the lens, why it is followed, its colour."""

    column: int
    kind: Kind
    color: str
    label: str


def lines(lens: Lens) -> list[Line]:
    """The followed tokens, quiet ones first, so that the next token lies on top."""
    found = []
    asked = 0
    for column, token in enumerate(lens.token_ids.tolist()):
        label = visible_bytes(lens.token_bytes[column])
        label = label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
        if token == lens.next_id:
            found.append(Line(column, "next", "var(--accent)", label))
        elif token in lens.asked:
            found.append(Line(column, "asked", ASKED_COLORS[asked % len(ASKED_COLORS)], label))
            asked += 1
        elif token == lens.eos_id:
            found.append(Line(column, "eos", "var(--s7)", label))
        else:
            found.append(Line(column, "leader", "var(--cut)", label))
    order: tuple[Kind, ...] = ("leader", "eos", "asked", "next")
    return sorted(found, key=lambda line: order.index(line.kind))


def rank_figure(lens: Lens, vocabulary: int) -> Drawing:
    """Rank by row, 1 at the top, on a logarithmic axis; labels at the end of each line."""
    followed, last = lines(lens), len(lens.ranks) - 1
    lowest = math.log10(max(int(lens.ranks.max()), 10)) * 1.04
    highest = -0.12
    ends = [math.log10(lens.ranks[-1, line.column]) for line in followed]
    texts = [_rank(lens, line) for line in followed]
    ticks = list(range(int(math.log10(vocabulary)) + 1))
    return drawing(
        RANK_HEIGHT,
        [_curve(lens, line, [math.log10(rank) for rank in lens.ranks[:, line.column]]) for line in followed],
        margin=_margin(lens, followed),
        xaxis=_rows_axis(last),
        yaxis={
            "range": [lowest, highest],
            "tickvals": ticks,
            "ticktext": [f"{10**power:,}" for power in ticks],
            "title": {"text": words("lens").text("axis_rank")},
            "fixedrange": True,
        },
        annotations=_labels(followed, texts, last, ends, RANK_HEIGHT, low=lowest, high=highest),
    )


def probability_figure(lens: Lens) -> Drawing:
    """Probability by row; labels at the end of the lines that are looked for or have risen there."""
    followed, last = lines(lens), len(lens.ranks) - 1
    low, high = -0.03, 1.03
    at_end = {line.column: float(lens.probabilities[-1, line.column]) for line in followed}
    told = [line for line in followed if line.kind in ("next", "asked") or at_end[line.column] >= RISEN]
    texts, ends = [_probability(lens, line) for line in told], [at_end[line.column] for line in told]
    return drawing(
        PROBABILITY_HEIGHT,
        [_curve(lens, line, lens.probabilities[:, line.column].tolist()) for line in followed],
        margin=_margin(lens, followed),
        xaxis=_rows_axis(last),
        yaxis={
            "range": [low, high],
            "nticks": 5,
            "title": {"text": words("lens").text("axis_p")},
            "fixedrange": True,
        },
        annotations=_labels(told, texts, last, ends, PROBABILITY_HEIGHT, low=low, high=high),
    )


def _rows_axis(last: int) -> dict[str, Any]:
    return {
        "range": [-0.5, last + 0.3],
        "title": {"text": words("lens").text("axis_row")},
        "dtick": 5 if last > 12 else 1,
        "fixedrange": True,
    }


def _curve(lens: Lens, line: Line, heights: Sequence[float]) -> dict[str, Any]:
    loud = line.kind != "leader"
    return {
        "type": "scatter",
        "mode": "lines+markers" if loud else "lines",
        "x": list(range(len(heights))),
        "y": [round(float(height), 5) for height in heights],
        "name": line.label,
        "line": {
            "color": line.color,
            "width": 2.6 if line.kind == "next" else 1.6,
            "dash": "dot" if line.kind == "eos" else "solid",
        },
        "marker": {"color": line.color, "size": 6 if line.kind == "next" else 4},
        "hovertext": [_hover(lens, line, row) for row in range(len(heights))],
        "hoverinfo": "text",
        "cliponaxis": False,
    }


def _hover(lens: Lens, line: Line, row: int) -> str:
    return words("lens").text(
        "hover",
        token=visible_bytes(lens.token_bytes[line.column]),
        row=row,
        rank=int(lens.ranks[row, line.column]),
        p=probability_text(float(lens.probabilities[row, line.column])),
        logit=float(lens.logits[row, line.column]),
    )


def _margin(lens: Lens, followed: Sequence[Line]) -> dict[str, int]:
    """Of both charts, so that their rows stand below one another."""
    longest = max(len(text(lens, line)) for line in followed for text in (_rank, _probability))
    return {"l": 50, "r": int(longest * CHARACTER) + 24, "t": TOP, "b": BOTTOM}


def _rank(lens: Lens, line: Line) -> str:
    return f"{line.label} {int(lens.ranks[-1, line.column]):,}"


def _probability(lens: Lens, line: Line) -> str:
    return f"{line.label} {probability_text(float(lens.probabilities[-1, line.column]))}"


def _labels(
    told: Sequence[Line], texts: Sequence[str], last: int, heights: Sequence[float], whole: int, *,
    low: float, high: float,
) -> list[dict[str, Any]]:  # fmt: skip
    """A text beside the end of each line in row `last`, moved apart where they would overlap.

    `heights` are the ends in units of the axis, which goes from `low` at the bottom to `high`; the chart is `whole`
    pixels high.
    """
    room = whole - TOP - BOTTOM
    ends = [(height - low) / (high - low) * room for height in heights]
    places = spread(ends, LABEL_GAP, low=4, high=room - 4)
    return [
        {
            "x": last, "y": round(height, 5), "ax": 14, "ay": round(end - place, 1),
            "arrowhead": 0, "arrowwidth": 0.8, "arrowcolor": "var(--faint)", "standoff": 4,
            "xanchor": "left", "yanchor": "middle", "borderpad": 0, "text": text,
            "font": {"size": 11, "color": _ink(line)},
        }
        for line, text, height, end, place in zip(told, texts, heights, ends, places, strict=True)
    ]  # fmt: skip


def _ink(line: Line) -> str:
    return {"next": "var(--accent-text)", "leader": "var(--faint)"}.get(line.kind, line.color)
