"""Before and after: the top candidates' probabilities by the model alone, and after the whole chain."""

from typing import Any

from components.drawing import Drawing, drawing
from components.sampling.candidates import chosen_index, cut_stage, shown, stage_label, token_label
from components.units import probability_text
from engine.trace import Stepped

ROW = 22
TOP, BOTTOM = 6, 26


def bars_height(step: Stepped) -> int:
    return TOP + BOTTOM + ROW * max(len(shown(step)), 1)


def bars_figure(step: Stepped) -> Drawing:
    """A wide pale bar before, a narrow one after, best first; a dropped one keeps its pale bar and names its stage."""
    indices = shown(step)
    longest = float(step.probabilities[:, indices][[0, -1]].max(initial=1e-6))
    before = _bars(step, indices, stage=0, width=0.78, colors=["var(--cut)"] * len(indices))
    after = _bars(step, indices, stage=-1, width=0.34, colors=_colors(step, indices))
    return drawing(
        bars_height(step),
        [before, after],
        margin={"l": 10, "r": 10, "t": TOP, "b": BOTTOM},
        yaxis={
            "range": [len(indices) - 0.5, -0.5],
            "fixedrange": True,
            "showgrid": False,
            "tickvals": list(range(len(indices))),
            "ticktext": [token_label(step.candidate_bytes[i]) for i in indices],
        },
        xaxis={"range": [0, longest * 1.4], "fixedrange": True, "tickformat": ".0%", "tickvals": _ticks(longest)},
        barmode="overlay",
        dragmode=False,
        annotations=[_words(step, i, row) for row, i in enumerate(indices)],
    )


def _bars(step: Stepped, indices: list[int], *, stage: int, width: float, colors: list[str]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(indices))),
        "x": [round(float(step.probabilities[stage, i]), 6) for i in indices],
        "width": width,
        "marker": {"color": colors, "line": {"width": 0}},
        "customdata": [{"token_id": int(step.candidate_ids[i])} for i in indices],
        "hovertext": [change_text(step, i) for i in indices],
        "hoverinfo": "text",
    }


def change_text(step: Stepped, index: int) -> str:
    """Words after a bar: ".315 → .193", or ".022 ✕ top-p 0.9" for a dropped candidate."""
    before = probability_text(float(step.probabilities[0, index]))
    cut = cut_stage(step, index)
    if cut is not None:
        return f"{before} ✕ {stage_label(step.stages[cut])}"
    return f"{before} → {probability_text(float(step.probabilities[-1, index]))}"


def _ticks(longest: float) -> list[float]:
    """A few round shares from 0 up to the longest bar, none above 100 %."""
    gap = next(gap for gap in (0.2, 0.1, 0.05, 0.02, 0.01) if longest / gap >= 2.5 or gap == 0.01)
    return [gap * count for count in range(int(min(longest, 1.0) / gap + 1e-6) + 1)]


def _colors(step: Stepped, indices: list[int]) -> list[str]:
    return ["var(--accent)" if i == chosen_index(step) else "var(--ink)" for i in indices]


def _words(step: Stepped, index: int, row: int) -> dict[str, Any]:
    dropped = cut_stage(step, index) is not None
    chosen = index == chosen_index(step)
    return {
        "x": float(step.probabilities[[0, -1], index].max()), "y": row, "xanchor": "left", "xshift": 6,
        "showarrow": False, "text": change_text(step, index),
        "font": {"size": 11, "color": "var(--dim)" if dropped else "var(--accent-text)" if chosen else "var(--ink)"},
    }  # fmt: skip
