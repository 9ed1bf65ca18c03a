"""What the attention probes give, as the panel reads it, and how positions and heads are named."""

from collections.abc import Sequence
from typing import Any, Protocol

from components.copy import words
from components.panel import View
from components.visible import visible_bytes
from engine.trace import Floats


class Figures(Protocol):
    """Figures of every head, each array [L, heads]."""

    entropy: Floats
    evenness: Floats
    on_self: Floats
    on_first: Floats
    on_previous: Floats
    elsewhere: Floats


class Moves(Protocol):
    """One head over the m positions in its reach."""

    raw: Floats
    scaled: Floats
    masked: Floats
    hidden_by: Sequence[str | None]
    weights: Floats
    value_norms: Floats
    mixed_norm: float
    scaling: float
    softcap: float | None


class Seen(Protocol):
    """The probe "attention"."""

    position: int
    layer: int
    head: int
    first: int
    later: int
    weights: Floats  # [heads, m]
    figures: Figures
    kinds: Sequence[Sequence[str]]
    moves: Moves
    kv_head: int
    group: Sequence[int]
    window: int | None


class Matrix(Protocol):
    """The probe "attention_matrix"."""

    turn: int
    layer: int
    head: int
    first: int
    last: int
    weights: Floats  # [n, n]
    outside: Floats  # [n]
    positions: int


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
