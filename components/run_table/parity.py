"""Loop = generate: the ids of this loop beside those that the library's own `generate` gives."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from components.copy import words
from components.in_words import translated
from components.units import seconds_text
from components.visible import visible_bytes
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.answers.parity import Parity
from engine.trace import Stepped

MAX_ROWS = 60


def parity_value(parity: Parity | None, steps: Sequence[Stepped]) -> dict[str, Any]:
    """One row a step up to MAX_ROWS, begun early enough that the first difference is among them."""
    say = words("run_table")
    if parity is None:
        return table.value([], [], caption=say.text("parity_empty"))
    if parity.reason is not None:
        return table.value([], [], caption=say.text("parity_reason", reason=translated(parity.reason)))
    columns = [
        Column(say.text("col_step"), align="right"),
        Column(say.text("col_text"), mono=True),
        Column(say.text("col_loop"), align="right"),
        Column(say.text("col_generate"), align="right"),
    ]
    pairs = list(enumerate(zip_longest(parity.ours, parity.theirs)))
    parted = parity.first_difference
    start = 0 if parted is None else max(0, parted - MAX_ROWS // 2)
    rows = [_row(step, ours, theirs, steps) for step, (ours, theirs) in pairs[start : start + MAX_ROWS]]
    return table.value(columns, rows, selected=None if parted is None else parted - start, caption=_said(parity))


def _row(step: int, ours: int | None, theirs: int | None, steps: Sequence[Stepped]) -> list[Cell | str]:
    text = visible_bytes(steps[step].token_bytes) if step < len(steps) and steps[step].token_id == ours else ""
    left, right = (words("run_table").text("nothing") if token is None else str(token) for token in (ours, theirs))
    return [str(step), text, left, Cell(right, tone="ok" if ours == theirs else "warn")]


def _said(parity: Parity) -> str:
    say, parted = words("run_table"), parity.first_difference
    if parted is None:
        return say.text("parity_same", count=len(parity.ours), seconds=seconds_text(parity.seconds))
    if parted == min(len(parity.ours), len(parity.theirs)):
        return say.text("parity_longer", count=parted)
    return say.text("parity_differ", step=parted)
