"""From tokens to shown text: the table of the byte buffer, and the answer with and without its special marks."""

from collections.abc import Sequence
from typing import Any

from components.copy import listed, sentences, words
from components.panel import View
from components.stopping.byte_buffer import Held, first_visible, held_after, running
from components.visible import running_text, visible, visible_bytes
from components.widgets import table, token_strip
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Chip, Group
from engine.trace import Stepped

HEX_BYTES = 8  # a longer token shows the first of its bytes, and all of them under the pointer


def buffer_table(view: View) -> dict[str, Any]:
    """One row a sampled token: its bytes, the text that it put on the page, what is held back after it and why."""
    assert view.trace is not None
    say = words("stopping")
    columns = [
        Column(say.text("col_step"), align="right"),
        Column(say.text("col_id"), align="right"),
        Column(say.text("col_token"), mono=True),
        Column(say.text("col_bytes"), mono=True),
        Column(say.text("col_shown"), mono=True),
        Column(say.text("col_held"), mono=True),
        Column(say.text("col_why")),
    ]
    steps = view.steps
    held = held_after(steps, view.trace.experiment.stop.stop_strings)
    selected = view.nearest_step
    return table.value(
        columns,
        [_row(step, after) for step, after in zip(steps, held, strict=True)],
        selected=next((i for i, step in enumerate(steps) if step is selected), None),
        caption=_caption(steps, released(view)),
        key=[{"position": step.position} for step in steps],
    )


def _row(step: Stepped, held: Held) -> list[Cell | str]:
    say = words("stopping")
    return [
        str(step.step),
        str(step.token_id),
        Cell(visible_bytes(step.token_bytes), tone="scaffold" if step.special else ""),
        _hex(step.token_bytes),
        Cell(visible(step.text) if step.text else say.text("nothing"), tone="assistant" if step.text else "dim"),
        Cell(visible_bytes(held.data), tone="warn"),
        _why(held),
    ]


def _hex(data: bytes) -> Cell:
    whole = data.hex(" ").upper()
    return Cell(whole if len(data) <= HEX_BYTES else f"{data[:HEX_BYTES].hex(' ').upper()} …", tone="dim", title=whole)


def _why(held: Held) -> str:
    say = words("stopping")
    reasons = [say.text("why_special")] if held.left_out else []
    if held.half_character:
        reasons.append(say.text("why_half"))
    if held.may_become:
        reasons.append(say.text("why_stop", strings=", ".join(f"“{visible(stop)}”" for stop in held.may_become)))
    return listed(reasons)


def released(view: View) -> str:
    """What was held back to the end of the turn and shown then; "" before the turn ended."""
    stopped = view.trace.stopped(view.cursor.turn) if view.trace else None
    return stopped.text if stopped else ""


def _caption(steps: Sequence[Stepped], end: str) -> str:
    """`end` is what was released when the turn ended."""
    say = words("stopping")
    first = first_visible(steps)
    silent = sum(1 for step in steps if not step.text and not step.special)
    told = say.text("released", text=visible(end)) if end else ""
    if first is not None:
        character = visible(first.text.strip()[0])
        return sentences(say.text("first_visible", step=first.step, character=character, silent=silent), told)
    return sentences(say.text("visible_at_end" if end.strip() else "nothing_visible"), told)


def answer_strip(view: View) -> dict[str, Any]:
    """The answer twice: as it is shown, and as the tokens spell it with every special mark."""
    say = words("stopping")
    steps, end = view.steps, released(view)
    shown = [_chip(step, step.text) for step in steps if step.text]
    if end and steps:
        shown.append(_chip(steps[-1], end))
    spelled = running([step.token_bytes for step in steps])
    marked = [_chip(step, text) for step, text in zip(steps, spelled, strict=True) if text]
    return token_strip.value(
        [
            Group(shown, label=say.text("without_marks"), role="assistant", as_text=True),
            Group(marked, label=say.text("with_marks"), role="scaffold", as_text=True),
        ]
    )


def _chip(step: Stepped, text: str) -> Chip:
    return Chip(
        text=running_text(text),
        position=step.position,
        role="scaffold" if step.special else "assistant",
        state="forced" if step.forced else "sampled",
        title=words("stopping").text("chip", step=step.step, id=step.token_id),
    )
