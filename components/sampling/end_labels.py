"""The labels of the slope chart: at both ends of every line, moved apart where they would overlap."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components.sampling.candidates import cut_stage, shown, token_label
from components.sampling.line_style import BELOW, ROOM, across, color, height_of
from components.spread import spread
from components.units import probability_text
from engine.trace import Stepped

GAP = 15  # pixels between the middles of two labels
CUT_GAP = 12  # the same for the smaller labels of cut lines
LEAD = 12  # pixels from the end of a line to its label


@dataclass(frozen=True)
class Label:
    """A text beside the end of a line; `y` and `end` are heights on the axis, of the text and of the line."""

    text: str
    stage: int
    y: float
    end: float
    apart: bool  # far enough from its line to need a lead
    side: int  # −1 at the left of the line's end, 1 at the right
    size: int
    color: str


def end_labels(step: Stepped, indices: Sequence[int], moved: int | None, *, top: float) -> list[Label]:
    """Labels at both ends of every line: survivors beside the first and last column, a ✕ where a line was cut."""
    last = len(step.stages) - 1
    left = _labels(step, indices, 0, moved, top=top, side=-1)
    ends: list[Label] = []
    for stage in range(last + 1):
        ending = [i for i in indices if cut_stage(step, i) == stage + 1]
        if ending:
            ends += _labels(step, ending, stage, moved, top=top, side=1, cut=True)
    survivors = [i for i in indices if cut_stage(step, i) is None]
    return left + ends + _labels(step, survivors, last, moved, top=top, side=1)


def end_label(step: Stepped, index: int, stage: int) -> str:
    return f"{token_label(step.candidate_bytes[index])} {probability_text(float(step.probabilities[stage, index]))}"


def as_trace(labels: Sequence[Label]) -> dict[str, Any]:
    """All labels as one trace: plotly takes milliseconds for each annotation."""
    return {
        "type": "scatter",
        # A marker that is not seen keeps the text at a distance of half its size.
        "mode": "markers+text",
        "marker": {"size": 2 * LEAD, "opacity": 0},
        "x": [label.stage for label in labels],
        "y": [label.y for label in labels],
        "text": [label.text for label in labels],
        "textposition": ["middle right" if label.side > 0 else "middle left" for label in labels],
        "textfont": {"size": [label.size for label in labels], "color": [label.color for label in labels]},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }


def lead(label: Label, last: int) -> dict[str, Any]:
    """A thin line from the end of a line to its label. In paper coordinates, or it would be cut at the axis' ends."""
    return {
        "type": "line", "xref": "paper", "xsizemode": "pixel", "xanchor": round(across(label.stage, last), 5),
        "x0": 5 * label.side, "x1": LEAD * label.side, "y0": label.end, "y1": label.y,
        "line": {"color": "var(--faint)", "width": 0.8},
    }  # fmt: skip


def _labels(
    step: Stepped, indices: Sequence[int], stage: int, moved: int | None, *, top: float, side: int, cut: bool = False
) -> list[Label]:
    """Labels beside the ends of lines, moved apart where they would overlap."""
    pixels = ROOM / top
    ends = [height_of(float(step.probabilities[stage, i])) * pixels for i in indices]
    gap, high = (CUT_GAP, _below_survivors(step, stage, ends, pixels)) if cut else (GAP, ROOM)
    low = max(6 - BELOW, min(4, high - (len(ends) - 1) * gap))
    places = spread(ends, gap, low=low, high=max(high, low))
    return [
        Label(
            text=f"✕ {token_label(step.candidate_bytes[i])}" if cut else end_label(step, i, stage),
            stage=stage,
            y=round(place / pixels, 5),
            end=round(end / pixels, 5),
            apart=abs(end - place) > 2,
            side=side,
            size=10 if cut else 12,
            color=label_color(step, i, moved),
        )
        for i, end, place in zip(indices, ends, places, strict=True)
    ]


def _below_survivors(step: Stepped, stage: int, ends: Sequence[float], pixels: float) -> float:
    """The highest place for labels of lines cut after `stage`: under those that go on, where the cut ones end lower."""
    going_on = [i for i in shown(step) if cut_stage(step, i) is None or (cut_stage(step, i) or 0) > stage + 1]
    lines = [height_of(float(step.probabilities[at, i])) * pixels for i in going_on for at in (stage, stage + 1)]
    lowest = min(lines, default=math.inf)
    if max(ends) > lowest:
        return ROOM
    return min(max(lowest - CUT_GAP + 2, 6 - BELOW + (len(ends) - 1) * (CUT_GAP - 2)), ROOM)


def label_color(step: Stepped, index: int, moved: int | None) -> str:
    of_line = color(step, index, moved)
    return {"var(--cut)": "var(--dim)", "var(--accent)": "var(--accent-text)"}.get(of_line, of_line)
