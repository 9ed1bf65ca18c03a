"""A view with its heading above it, as a panel holds several."""

from collections.abc import Callable
from typing import Any

import gradio as gr


def titled(build: Callable[..., gr.HTML], elem_id: str, label: str, **options: Any) -> gr.HTML:
    """Build a widget in the current Blocks under its label as a heading.

    `label` comes from the copy files only: the heading is read as Markdown. It is hidden with its widget.
    """
    gr.Markdown(f"### {label}", elem_id=heading_of(elem_id), elem_classes="section")
    return build(elem_id, label, **options)


def heading_of(elem_id: str) -> str:
    """The element id of the heading above a widget."""
    return f"{elem_id}-heading"
