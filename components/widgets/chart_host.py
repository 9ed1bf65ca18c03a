"""A plotly figure redrawn in place: the node, the zoom and the clicks stay, the colours follow the theme."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

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
    title: str = "Numbers",
) -> dict[str, Any]:
    r"""The chart.

    Args:
        figure: {"data": …, "layout": …}. Texts in it are plain (markup is shown as written,
            "\n" breaks a line); only hovertemplate and texttemplate are markup, so they must never hold a token.
            Colours may be `var(--accent)` and the like.
        label: what a screen reader says in place of the picture.
        height: in pixels.
        width: the least width in pixels; on a narrower screen the chart scrolls inside its box.
        numbers: a `table.value` folded under the chart, under the heading `title`.
    """
    layout = figure["layout"] | {"height": height}
    return {
        # Apart, so that only what changed travels; and what all marks of a kind share travels once.
        "traces": host.item(_shared_apart(figure["data"])),
        "annotations": host.item(_shared_apart(layout.pop("annotations", []))),
        "layout": host.item(layout),
        "label": label,
        "height": height,
        "width": width,
        "numbers": numbers,
        "title": title,
    }


def _shared_apart(marks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The properties that every mark has alike, once, and of each mark the others."""
    first, *others = marks or [{}]
    shared = {key: part for key, part in first.items() if all(key in other and other[key] == part for other in others)}
    return {"shared": shared, "marks": [{key: mark[key] for key in mark if key not in shared} for mark in marks]}


def read_figure(value: Mapping[str, Any]) -> dict[str, Any]:
    """The figure that a chart's value draws, as {"data", "layout"}: what the browser makes of it."""
    layout = json.loads(value["layout"])
    return {"data": _joined(value["traces"]), "layout": layout | {"annotations": _joined(value["annotations"])}}


def _joined(text: str) -> list[dict[str, Any]]:
    parts = json.loads(text)
    return [{**parts["shared"], **mark} for mark in parts["marks"]]
