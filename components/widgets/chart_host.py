"""A plotly figure redrawn in place: the node, the zoom and the clicks stay, the colours follow the theme."""

import json
from typing import Any

import gradio as gr
import plotly.graph_objects as go

from components.widgets import host


def build(elem_id: str, label: str) -> gr.HTML:
    """The component. A clicked point fires `select` with {"x", "y", "key"}; the key is the point's customdata."""
    return host.widget("chart_host", elem_id, label)


def value(
    figure: go.Figure | dict[str, Any],
    *,
    label: str,
    height: int,
    width: int = 0,
    numbers: dict[str, Any] | None = None,
    title: str = "Numbers",
) -> dict[str, Any]:
    r"""The chart.

    Args:
        figure: a figure, or the same as {"data": …, "layout": …}. Texts in it are plain (markup is shown as written,
            "\n" breaks a line); only hovertemplate and texttemplate are markup, so they must never hold a token.
            Colours may be `var(--accent)` and the like.
        label: what a screen reader says in place of the picture.
        height: in pixels.
        width: the least width in pixels; on a narrower screen the chart scrolls inside its box.
        numbers: a `table.value` folded under the chart, under the heading `title`.
    """
    drawing = figure if isinstance(figure, dict) else json.loads(figure.to_json())
    layout = {key: part for key, part in drawing["layout"].items() if key != "template"} | {"height": height}
    return {
        "figure": host.item({"data": drawing["data"], "layout": layout}),
        "label": label,
        "height": height,
        "width": width,
        "numbers": numbers,
        "title": title,
    }
