"""The slope chart: each column is the distribution after one more processor, each candidate a line across them."""

from collections.abc import Sequence
from typing import Any

from components.copy import words
from components.drawing import SANS, Drawing, drawing
from components.sampling.alone import alone_figure, alone_height
from components.sampling.candidates import cut_stage, hover, most_moved, shown, stage_label, token_label
from components.sampling.end_labels import as_trace, end_label, end_labels, lead
from components.sampling.line_style import BELOW, BOTTOM, HEIGHT, ROOM, TOP, color, height_of, stage_range, weight
from engine.trace import Stepped

CHARACTER = 7.3  # pixels, of the mono font at 12
COLUMN = 112  # pixels that the head of a column takes


def slope_figure(step: Stepped) -> Drawing:
    """One line a candidate from stage to stage, on a square-root probability axis; a click gives its token id."""
    if len(step.stages) == 1:
        return alone_figure(step)
    indices = shown(step)
    moved = most_moved(step, indices)
    last = len(step.stages) - 1
    margin = _margin(step, indices)
    top = height_of(float(step.probabilities[:, indices].max(initial=1e-6))) * 1.04
    heads = [head for kind in (_name_of, _measures_of) for head in (kind(step, stage) for stage in range(last + 1))]
    labels = end_labels(step, indices, moved, top=top)
    return drawing(
        HEIGHT,
        # Quiet lines first: what was cut lies under what survived, the chosen one on top.
        [
            as_trace(labels),
            *(_candidate(step, i, moved) for i in sorted(indices, key=lambda i: weight(step, i, moved))),
        ],
        margin={"l": margin, "r": margin, "t": TOP, "b": BOTTOM},
        xaxis={"range": [*stage_range(last)], "visible": False, "fixedrange": True},
        yaxis={"range": [round(-BELOW / ROOM * top, 5), top], "visible": False, "fixedrange": True},
        dragmode=False,
        shapes=[
            *(_column(stage) for stage in range(last + 1)),
            *(lead(label, last) for label in labels if label.apart),
        ],
        annotations=heads,
    )


def _column(stage: int) -> dict[str, Any]:
    return {
        "type": "line", "x0": stage, "x1": stage, "layer": "below",
        "y0": round(BELOW / (ROOM + BELOW), 4), "y1": 1, "yref": "paper",
        "line": {"color": "var(--line)", "width": 1},
    }  # fmt: skip


def _candidate(step: Stepped, index: int, moved: int | None) -> dict[str, Any]:
    cut = cut_stage(step, index)
    stages = list(range(len(step.stages) if cut is None else cut))
    heavy = weight(step, index, moved) >= 2
    width = 2.6 if heavy else 1.4
    stroke = color(step, index, moved)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": stages,
        "y": [round(height_of(float(step.probabilities[stage, index])), 5) for stage in stages],
        "name": token_label(step.candidate_bytes[index]),
        "line": {"color": stroke, "width": width},
        "marker": {"color": stroke, "size": 2 * width + 2},
        "opacity": 1 if heavy else 0.8,
        "customdata": [{"token_id": int(step.candidate_ids[index])}] * len(stages),
        "hovertext": [hover(step, index, stage) for stage in stages],
        "hoverinfo": "text",
        "cliponaxis": False,
    }


def _name_of(step: Stepped, stage: int) -> dict[str, Any]:
    """The head of a column: the stage with its setting."""
    bold = {"family": SANS, "weight": 600, "color": "var(--ink)"}
    return {**_head(stage), "text": stage_label(step.stages[stage]), "yshift": 38, "font": bold}


def _measures_of(step: Stepped, stage: int) -> dict[str, Any]:
    """Under it: the kept count, the entropy and the mass it removed."""
    say = words("sampling")
    one = step.stages[stage]
    removed = 100 * one.mass_removed
    measures = say.text("head_removed" if removed >= 0.05 else "head_entropy", entropy=one.entropy, percent=removed)
    small = {"size": 11, "color": "var(--dim)"}
    counts = f"{say.text('head_kept', kept=one.kept)}\n{measures}"
    return {**_head(stage), "text": counts, "yshift": 6, "align": "center", "font": small}


def _head(stage: int) -> dict[str, Any]:
    return {"x": stage, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}


def slope_height(step: Stepped) -> int:
    return alone_height(step) if len(step.stages) == 1 else HEIGHT


def least_width(step: Stepped) -> int:
    """Pixels under which the heads of the columns would touch."""
    if len(step.stages) == 1:
        return 0
    return 2 * _margin(step, shown(step)) + COLUMN * (len(step.stages) - 1)


def _margin(step: Stepped, indices: Sequence[int]) -> int:
    """Room for the longest label at either end."""
    labels = [end_label(step, i, stage) for i in indices for stage in (0, len(step.stages) - 1)]
    return max(int(max(map(len, labels), default=0) * CHARACTER) + 22, COLUMN // 2)
