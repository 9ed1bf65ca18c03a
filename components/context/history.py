"""The whole history of a turn, message by message: what it says, how many tokens it is, how many of them stay."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from components.copy import words
from components.roles import role_colour
from components.visible import running_text
from components.widgets import table
from components.widgets.table import Cell, Column, Tone
from engine.dialogue import messages_of
from engine.trace import Rendered, Trace
from engine.truncated import Portion, Truncated

#: Characters of a message that a row shows.
SHOWN = 90
#: What the template writes in a role's name where no message stands; anything else it just added.
WRITTEN = {"tool": "tool_definitions", "assistant": "generation_prompt"}


@dataclass(frozen=True)
class Row:
    """A message, or what the template wrote on its own (`message` None)."""

    portion: Portion
    text: str


def select(trace: Trace, rendered: Rendered) -> list[Row]:
    """The messages in order; where nothing had to leave, those of the prompt, which all stay."""
    truncated = trace.truncated(rendered.turn)
    portions = truncated.portions if truncated else _whole(rendered)
    raw = trace.experiment.prompt
    said = [message.content for message in messages_of(trace, rendered.turn)] if raw is None else [raw]
    texts = dict(enumerate(said))
    return [Row(portion, _text(portion, texts)) for portion in portions]


def history_value(rows: list[Row], truncated: Truncated | None) -> dict[str, Any]:
    """One row a message; the last one adds up."""
    say = words("context")
    columns = [
        Column("#", align="right"),
        Column(say.text("col_role")),
        Column(say.text("col_stay"), align="right", help=say.text("help_stay")),
        Column(say.text("col_text")),
    ]
    cells: list[list[Cell | str]] = []
    for row in rows:
        portion, gone = row.portion, row.portion.kept == 0 < row.portion.tokens
        cells.append(
            [
                "–" if portion.message is None else str(portion.message),
                Cell(portion.role, tone="cut" if gone else role_colour(portion.role)),
                _stay(portion),
                Cell(row.text, tone="cut" if gone else ""),
            ]
        )
    tokens, kept = sum(row.portion.tokens for row in rows), sum(row.portion.kept for row in rows)
    cells.append(["", "", say.text("stay", kept=kept, tokens=tokens), say.text("total")])
    summary = truncated.summary if truncated else None
    said = say.text("summary_in_place", count=truncated.after - kept) if truncated and summary else ""
    return table.value(columns, cells, caption=said)


def _stay(portion: Portion) -> Cell:
    """How many of its tokens stay: all, some, or none."""
    tone: Tone = "ok" if portion.kept == portion.tokens else "warn" if portion.kept else "dim"
    share = portion.kept / portion.tokens if portion.tokens else None
    return Cell(words("context").text("stay", kept=portion.kept, tokens=portion.tokens), tone=tone, bar=share)


def _whole(rendered: Rendered) -> list[Portion]:
    found = []
    for (role, message), spans in groupby(enumerate(rendered.spans), key=lambda one: (one[1].role, one[1].message)):
        indices = {index for index, _ in spans}
        count = sum(int(index) in indices for index in rendered.span_index)
        found.append(Portion(role, message, count, count))
    return found


def _text(portion: Portion, texts: Mapping[int, str]) -> str:
    if portion.message is None:
        return words("context").text(WRITTEN.get(portion.role, "by_template"))
    text = texts.get(portion.message, "")
    return running_text(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")
