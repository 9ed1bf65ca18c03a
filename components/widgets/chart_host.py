"""A plotly figure redrawn in place: the node, the zoom and the clicks stay, the colours follow the theme."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import gradio as gr

from components.copy import words
from components.drawing import Drawing
from components.widgets import host


def build(elem_id: str, label: str) -> gr.HTML:
    """The component. A clicked point fires `select` with {"x", "y", "key"}; the key is the point's customdata."""
    return host.widget("chart_host", elem_id, label)


def value(
    figure: Drawing,
    *,
    label: str,
    height: int,
    width: int = 0,
    numbers: dict[str, Any] | None = None,
    title: str = "",
) -> dict[str, Any]:
    r"""The chart.

    Args:
        figure: {"data": …, "layout": …}. Texts in it are plain (markup is shown as written,
            "\n" breaks a line); only hovertemplate and texttemplate are markup, so they must never hold a token.
            Colours may be `var(--accent)` and the like.
        label: what a screen reader says in place of the picture.
        height: in pixels.
        width: the least width in pixels; on a narrower screen the chart scrolls inside its box.
        numbers: a `table.value` folded under the chart, under the heading `title`, else "Numbers".
    """
    layout = figure["layout"] | {"height": height}
    return {
        # Apart, so that only what changed travels; and what marks of a kind share travels once.
        "traces": host.item(_runs(figure["data"])),
        "annotations": host.item(_runs(layout.pop("annotations", []))),
        "layout": {key: host.item(part) for key, part in layout.items()},
        "label": label,
        "height": height,
        "width": width,
        "numbers": numbers,
        "title": title or words("page").text("numbers"),
    }


def _runs(marks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Marks in runs of the same properties: of each run those that all have alike, and of each mark the others."""
    runs = []
    for _, members in groupby(marks, key=frozenset):
        first, *others = run = list(members)
        shared = {key: part for key, part in first.items() if all(other[key] == part for other in others)}
        runs.append({"shared": shared, "marks": [{k: mark[k] for k in mark if k not in shared} for mark in run]})
    return runs
