"""Before and after: the top candidates' probabilities by the model alone, and after the whole chain."""

import plotly.graph_objects as go

from components.figures import base_figure, ticks
from components.sampling_candidates import chosen_index, cut_stage, shown, stage_label, token_label
from components.units import probability_text
from engine.trace import Stepped

ROW = 22
TOP, BOTTOM = 6, 26


def bars_height(step: Stepped) -> int:
    return TOP + BOTTOM + ROW * max(len(shown(step)), 1)


def bars_figure(step: Stepped) -> go.Figure:
    """A wide pale bar before, a narrow one after, best first; a dropped one keeps its pale bar and names its stage."""
    indices = shown(step)
    longest = float(step.probabilities[:, indices][[0, -1]].max(initial=1e-6))
    figure = base_figure(
        bars_height(step),
        margin={"l": 10, "r": 10, "t": TOP, "b": BOTTOM},
        yaxis={"range": [len(indices) - 0.5, -0.5], "fixedrange": True, "showgrid": False, "automargin": True},
        xaxis={"range": [0, longest * 1.4], "fixedrange": True, "tickformat": ".0%", "tickvals": _ticks(longest)},
        barmode="overlay",
        dragmode=False,
    )
    ticks(figure, "y", [token_label(step.candidate_bytes[i]) for i in indices])
    keys = [{"token_id": int(step.candidate_ids[i])} for i in indices]
    rows = list(range(len(indices)))
    for stage, width, colors in ((0, 0.78, ["var(--cut)"] * len(rows)), (-1, 0.34, _colors(step, indices))):
        figure.add_trace(
            go.Bar(
                y=rows,
                x=[float(step.probabilities[stage, i]) for i in indices],
                width=width,
                orientation="h",
                marker={"color": colors, "line": {"width": 0}},
                customdata=keys,
                hovertext=[change_text(step, i) for i in indices],
                hoverinfo="text",
            )
        )
    figure.update_layout(annotations=[_words(step, i, row) for row, i in enumerate(indices)])
    return figure


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


def _words(step: Stepped, index: int, row: int) -> dict[str, object]:
    dropped = cut_stage(step, index) is not None
    chosen = index == chosen_index(step)
    return {
        "x": float(step.probabilities[[0, -1], index].max()), "y": row, "xanchor": "left", "xshift": 6,
        "showarrow": False, "text": change_text(step, index),
        "font": {"size": 11, "color": "var(--dim)" if dropped else "var(--accent-text)" if chosen else "var(--ink)"},
    }  # fmt: skip
