"""Tokens in a row: chips of a timeline, or the running text of messages, each token on its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.widgets import host


@dataclass(frozen=True)
class Chip:
    """One token.

    `position` counts over the whole context and is what a click gives back. `role` is system, user, assistant, tool or
    scaffold and gives the colour; `state` is computed, reused, sampled, forced (by a person) or grammar (forced by it)
    and gives the fill and the line.
    """

    text: str
    position: int
    role: str = "scaffold"
    state: str = "computed"
    title: str = ""


@dataclass(frozen=True)
class Group:
    """Tokens that belong together: a stretch of chips, or (`as_text`) a message that flows as ordinary text."""

    chips: Sequence[Chip]
    label: str = ""
    role: str = ""
    note: str = ""
    as_text: bool = False


def build(elem_id: str, label: str, *, height: int = 320) -> gr.HTML:
    """The component; higher than `height` pixels it scrolls. A chosen token fires `select` with {"position": p}."""
    return host.widget("token_strip", elem_id, label, height=height)


def value(
    groups: Sequence[Group],
    *,
    selected: int | None = None,
    legend: Sequence[tuple[str, str]] = (),
) -> dict[str, Any]:
    """The tokens; `selected` is a position, `legend` pairs of role and its label (role "" is text without a swatch).

    Items: groups [label, role, note, as_text]; chips [group, text, position, role, state, title]; legend [role, label].
    """
    return {
        "groups": host.items([group.label, group.role, group.note, group.as_text] for group in groups),
        "chips": host.items(
            [index, chip.text, chip.position, chip.role, chip.state, chip.title]
            for index, group in enumerate(groups)
            for chip in group.chips
        ),
        "selected": selected,
        "legend": host.items(list(pair) for pair in legend),
    }
