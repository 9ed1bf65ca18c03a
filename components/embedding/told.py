"""Positions as the model is told them, beside places in the turn: two countings where a sliding window has moved."""

from collections.abc import Sequence

from components.copy import words
from components.inside import key_at
from components.panel import View
from components.widgets.token_strip import Group
from engine.answers.positions import Positions
from engine.answers.rotary import Rotary


def told_note(found: Rotary | Positions) -> list[Group]:
    """That the model was told another position than the place in the turn; nothing where they are one."""
    if not found.ahead:
        return []
    return [Group([], note=words("embedding").text("told", told=found.told, position=found.position), as_text=True)]


def column_keys(found: Rotary | Positions, view: View, told: Sequence[int]) -> list[dict[str, int]]:
    """The place in the turn of the token at each position; nothing where none was fed."""
    return [key_at(view, at - found.ahead) for at in told]
