"""The slope chart: each column is the distribution after one more processor, each candidate a line across them."""

import math
from collections.abc import Sequence
from typing import Any

from components.copy import words
from components.drawing import SANS, Drawing, drawing
from components.sampling.candidates import chosen_index, cut_stage, most_moved, shown, stage_label, token_label
from components.spread import spread
from components.units import probability_text
from engine.trace import Stepped

HEIGHT = 390
TOP, BOTTOM = 62, 10
LABEL_GAP = 15  # pixels between the middles of two labels
CUT_GAP = 12  # the same for the smaller labels of cut lines
CHARACTER = 7.3  # pixels, of the mono font at 12
COLUMN = 112  # pixels that the head of a column takes


def slope_figure(step: Stepped) -> Drawing:
    """One line a candidate from stage to stage, on a square-root probability axis; a click gives its token id."""
    indices = shown(step)
    moved = most_moved(step, indices)
    last = len(step.stages) - 1
    margin = _margin(step, indices)
    top = height_of(float(step.probabilities[:, indices].max(initial=1e-6))) * 1.04
    heads = [head for kind in (_name_of, _measures_of) for head in (kind(step, stage) for stage in range(last + 1))]
    return drawing(
        HEIGHT,
        # Quiet lines first: what was cut lies under what survived, the chosen one on top.
        [_candidate(step, i, moved) for i in sorted(indices, key=lambda i: _weight(step, i, moved))],
        margin={"l": margin, "r": margin, "t": TOP, "b": BOTTOM},
        xaxis={"range": [-0.02, max(last, 0.5) + 0.02], "visible": False, "fixedrange": True},
        yaxis={"range": [0, top], "visible": False, "fixedrange": True},
        dragmode=False,
        shapes=[_column(stage) for stage in range(last + 1)],
        annotations=[*heads, *_ends(step, indices, moved, top=top)],
    )


def height_of(probability: float) -> float:
    """Where a probability stands on the vertical axis: its square root, so that small ones keep some room."""
    return math.sqrt(probability)


def _column(stage: int) -> dict[str, Any]:
    return {
        "type": "line", "x0": stage, "x1": stage, "y0": 0, "y1": 1, "yref": "paper", "layer": "below",
        "line": {"color": "var(--line)", "width": 1},
    }  # fmt: skip


def _weight(step: Stepped, index: int, moved: int | None) -> int:
    if index == chosen_index(step):
        return 3
    if index == moved:
        return 2
    return 1 if cut_stage(step, index) is None else 0


def _color(step: Stepped, index: int, moved: int | None) -> str:
    return ("var(--cut)", "var(--ink)", "var(--system)", "var(--accent)")[_weight(step, index, moved)]


def _candidate(step: Stepped, index: int, moved: int | None) -> dict[str, Any]:
    cut = cut_stage(step, index)
    stages = list(range(len(step.stages) if cut is None else cut))
    heavy = _weight(step, index, moved) >= 2
    width = 2.6 if heavy else 1.4
    color = _color(step, index, moved)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": stages,
        "y": [round(height_of(float(step.probabilities[stage, index])), 5) for stage in stages],
        "name": token_label(step.candidate_bytes[index]),
        "line": {"color": color, "width": width},
        "marker": {"color": color, "size": 2 * width + 2},
        "opacity": 1 if heavy else 0.8,
        "customdata": [{"token_id": int(step.candidate_ids[index])}] * len(stages),
        "hovertext": [_hover(step, index, stage) for stage in stages],
        "hoverinfo": "text",
        "cliponaxis": False,
    }


def _hover(step: Stepped, index: int, stage: int) -> str:
    return words("sampling").text(
        "hover",
        token=token_label(step.candidate_bytes[index]),
        stage=stage_label(step.stages[stage]),
        logit=float(step.logits[stage, index]),
        p=probability_text(float(step.probabilities[stage, index])),
    )


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


def least_width(step: Stepped) -> int:
    """Pixels under which the heads of the columns would touch."""
    return 2 * _margin(step, shown(step)) + COLUMN * (len(step.stages) - 1)


def _margin(step: Stepped, indices: Sequence[int]) -> int:
    """Room for the longest label at either end."""
    labels = [_end_label(step, i, stage) for i in indices for stage in (0, len(step.stages) - 1)]
    return max(int(max(map(len, labels), default=0) * CHARACTER) + 22, COLUMN // 2)


def _end_label(step: Stepped, index: int, stage: int) -> str:
    return f"{token_label(step.candidate_bytes[index])} {probability_text(float(step.probabilities[stage, index]))}"


def _ends(step: Stepped, indices: Sequence[int], moved: int | None, *, top: float) -> list[dict[str, Any]]:
    """Labels at both ends of every line: survivors beside the first and last column, a ✕ where a line was cut."""
    last = len(step.stages) - 1
    left = _labels(step, indices, 0, moved, top=top, side=-1) if last else []
    ends: list[dict[str, Any]] = []
    for stage in range(last + 1):
        ending = [i for i in indices if cut_stage(step, i) == stage + 1]
        if ending:
            ends += _labels(step, ending, stage, moved, top=top, side=1, cut=True)
    survivors = [i for i in indices if cut_stage(step, i) is None]
    return left + ends + _labels(step, survivors, last, moved, top=top, side=1)


def _labels(
    step: Stepped, indices: Sequence[int], stage: int, moved: int | None, *, top: float, side: int, cut: bool = False
) -> list[dict[str, Any]]:
    """Labels beside the ends of lines, moved apart where they would overlap, each with a thin lead to its line."""
    pixels = (HEIGHT - TOP - BOTTOM) / top
    ends = [height_of(float(step.probabilities[stage, i])) * pixels for i in indices]
    high = _below_survivors(step, stage, ends, pixels) if cut else HEIGHT - TOP - BOTTOM
    places = spread(ends, CUT_GAP if cut else LABEL_GAP, low=4, high=high)
    return [
        {
            "x": stage, "y": round(end / pixels, 5), "ax": side * 14, "ay": round(end - place, 1),
            "arrowhead": 0, "arrowwidth": 0.8, "arrowcolor": "var(--faint)", "standoff": 5,
            "xanchor": "left" if side > 0 else "right", "yanchor": "middle", "borderpad": 0,
            "text": f"✕ {token_label(step.candidate_bytes[i])}" if cut else _end_label(step, i, stage),
            "font": {"size": 10 if cut else 12, "color": _label_color(step, i, moved)},
        }
        for i, end, place in zip(indices, ends, places, strict=True)
    ]  # fmt: skip


def _below_survivors(step: Stepped, stage: int, ends: Sequence[float], pixels: float) -> float:
    """The highest place for labels of lines cut after `stage`: under those that go on, where the cut ones end lower."""
    going_on = [i for i in shown(step) if cut_stage(step, i) is None or (cut_stage(step, i) or 0) > stage + 1]
    lines = [height_of(float(step.probabilities[at, i])) * pixels for i in going_on for at in (stage, stage + 1)]
    lowest = min(lines, default=math.inf)
    if max(ends) > lowest:
        return HEIGHT - TOP - BOTTOM
    return min(max(lowest - CUT_GAP + 2, 4 + (len(ends) - 1) * (CUT_GAP - 2)), HEIGHT - TOP - BOTTOM)


def _label_color(step: Stepped, index: int, moved: int | None) -> str:
    color = _color(step, index, moved)
    return {"var(--cut)": "var(--dim)", "var(--accent)": "var(--accent-text)"}.get(color, color)
