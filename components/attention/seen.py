"""Asking about the selected head, and how positions and heads are named."""

from collections.abc import Sequence
from typing import Any

from components.copy import words
from components.panel import View
from components.visible import visible_bytes


def ask(view: View, name: str, **arguments: Any) -> Any:
    """A probe about the selected head of the selected turn."""
    assert view.probe is not None
    chosen = {"turn": view.cursor.turn, "layer": view.cursor.layer, "head": view.cursor.head}
    return view.probe(name, **chosen | arguments)


def tokens_of(view: View) -> tuple[bytes, ...]:
    """The tokens of the selected turn by position."""
    assert view.rendered is not None
    return (*view.rendered.token_bytes, *(step.token_bytes for step in view.steps))


def place(position: int, tokens: Sequence[bytes]) -> str:
    """A position and its token."""
    return f"{position} {visible_bytes(tokens[position])}"


def head_names(heads: int, group: int) -> list[str]:
    """The heads of a layer, with the key/value head of each where several share one."""
    say = words("attention")
    if group == 1:
        return [say.text("head", head=head) for head in range(heads)]
    return [say.text("head_of", head=head, kv_head=head // group) for head in range(heads)]
