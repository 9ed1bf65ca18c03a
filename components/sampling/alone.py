"""The slope chart where no processor is on: one distribution has no slope, so its candidates stand in rows."""

from typing import Any

from components.copy import words
from components.drawing import SANS, Drawing, drawing
from components.sampling.candidates import hover, shown, stage_label, token_label
from components.sampling.end_labels import label_color
from components.sampling.line_style import color, height_of, weight
from components.units import probability_text
from engine.trace import Stepped

ROW = 24
TOP, BOTTOM = 56, 30
SHARES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
TICKS = 5  # at most; more would touch on a phone


def alone_height(step: Stepped) -> int:
    return TOP + BOTTOM + ROW * max(len(shown(step)), 1)


def alone_figure(step: Stepped) -> Drawing:
    """A row a candidate, likeliest first: its dot stands at its probability, on the same square-root axis as the slope
    chart's, its number beside it; a click gives its token id.
    """
    indices = shown(step)
    probabilities = [float(step.probabilities[0, index]) for index in indices]
    longest = max([height_of(p) for p in probabilities], default=0.001)
    rows = list(range(len(indices)))
    return drawing(
        alone_height(step),
        [_dots(step, indices, probabilities)],
        margin={"l": 10, "r": 10, "t": TOP, "b": BOTTOM},
        xaxis={
            "range": [0, longest * 1.3],
            "fixedrange": True,
            "showgrid": True,
            **_ticks(longest),
        },
        yaxis={
            "range": [len(rows) - 0.5, -0.5],
            "fixedrange": True,
            "showgrid": False,
            "tickvals": rows,
            "ticktext": [token_label(step.candidate_bytes[index]) for index in indices],
        },
        shapes=[
            {
                "type": "line", "x0": 0, "x1": round(height_of(p), 5), "y0": row, "y1": row,
                "line": {"color": color(step, index, None), "width": _width(step, index)},
            }
            for row, (index, p) in enumerate(zip(indices, probabilities, strict=True))
        ],
        annotations=_heads(step),
        dragmode=False,
    )  # fmt: skip


def _dots(step: Stepped, indices: list[int], probabilities: list[float]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [round(height_of(p), 5) for p in probabilities],
        "y": list(range(len(indices))),
        "marker": {
            "opacity": 1,
            "color": [color(step, index, None) for index in indices],
            "size": [2 * _width(step, index) + 3 for index in indices],
        },
        "text": [f" {probability_text(p)}" for p in probabilities],
        "textposition": "middle right",
        "textfont": {"size": 12, "color": [label_color(step, index, None) for index in indices]},
        "customdata": [{"token_id": int(step.candidate_ids[index])} for index in indices],
        "hovertext": [hover(step, index, 0) for index in indices],
        "hoverinfo": "text",
        "cliponaxis": False,
    }


def _width(step: Stepped, index: int) -> float:
    return 2.6 if weight(step, index, None) >= 2 else 1.4


def _ticks(longest: float) -> dict[str, Any]:
    """A few round shares up to the longest line, where they stand on the axis."""
    fitting = [share for share in SHARES if height_of(share) <= longest * 1.2]
    apart: list[float] = []
    for share in reversed(fitting):
        if not apart or height_of(apart[-1]) - height_of(share) >= longest / TICKS:
            apart.append(share)
    return {
        "tickvals": [0, *(round(height_of(share), 5) for share in reversed(apart))],
        "ticktext": ["0", *(f"{share:.1%}" if share < 0.01 else f"{share:.0%}" for share in reversed(apart))],
    }


def _heads(step: Stepped) -> list[dict[str, Any]]:
    """What the one stage is, its measures, and that nothing follows it: at the left, over the rows."""
    say = words("sampling")
    own = step.stages[0]
    measures = f"{say.text('head_kept', kept=own.kept)} · {say.text('head_entropy', entropy=own.entropy)}"
    left = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 1, "yanchor": "bottom"}
    bold = {"family": SANS, "weight": 600, "color": "var(--ink)"}
    small = {"size": 11, "color": "var(--dim)"}
    said = f"{measures} · {say.text('alone')}"
    return [
        {**left, "showarrow": False, "yshift": 30, "text": stage_label(own), "font": bold},
        {**left, "showarrow": False, "yshift": 8, "text": said, "font": small},
    ]
