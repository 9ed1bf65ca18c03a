"""What the panels are made of, read off the components that they build for the page."""

import re
from collections.abc import Sequence
from typing import Any

import gradio as gr
from gradio.blocks import Block, BlockContext

from components.copy import words
from components.panel import Panel
from components.widgets.host import mounted


def layouts(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    """Each panel by its station, as plain data: title, intro, and its parts in order.

    A part is {"heading", "id"}, {"widget", "options"} or {"fold", "parts"}. An intro comes without its last paragraph,
    which proposes something to try where a model runs, and without marks of emphasis.
    """
    with gr.Blocks() as blocks:
        for panel in panels:
            with gr.Column():
                panel.build()
    return {panel.STATION: _layout(panel, column) for panel, column in zip(panels, blocks.children, strict=True)}


def _layout(panel: Panel, column: Block) -> dict[str, Any]:
    say = words(panel.STATION)
    return {
        "station": panel.STATION,
        "title": say.title,
        "intro": [re.sub(r"([*`])(.+?)\1", r"\2", text) for text in say.intro.split("\n\n")[:-1]],
        "parts": [_part(block) for block in _children(column)],
    }


def widget_ids(parts: list[dict[str, Any]]) -> list[str]:
    """The element ids of the widgets, in the order in which they were built."""
    found = []
    for part in parts:
        if "widget" in part:
            found.append(str(part["options"]["id"]))
        found += widget_ids(part.get("parts", []))
    return found


def without(parts: list[dict[str, Any]], gone: set[str]) -> list[dict[str, Any]]:
    """The parts without those of the element ids `gone`, and without folds that are empty then."""
    kept = []
    for part in parts:
        if "fold" in part:
            inside = without(part["parts"], gone)
            kept += [{**part, "parts": inside}] if inside else []
        elif part.get("id", part.get("options", {}).get("id")) not in gone:
            kept.append(part)
    return kept


def _children(block: Block) -> list[Block]:
    return block.children if isinstance(block, BlockContext) else []


def _part(block: Block) -> dict[str, Any]:
    if isinstance(block, gr.HTML):
        name, options = mounted(block)
        return {"widget": name, "options": options}
    if isinstance(block, gr.Accordion):
        return {"fold": str(block.label), "parts": [_part(child) for child in _children(block)]}
    if isinstance(block, gr.Markdown):
        return {"heading": str(block.value).removeprefix("### "), "id": str(block.elem_id)}
    raise TypeError(f"a panel holds a {type(block).__name__}, which a page without a server cannot show")
