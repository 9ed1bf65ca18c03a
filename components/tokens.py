"""Station Tokens: every token of the context with its bytes and its span, and how they add up."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

import gradio as gr

from components.characters import characters_touched, is_whole
from components.copy import words
from components.heading import titled
from components.panel import View
from components.roles import role_colour
from components.transcript_strip import position_role
from components.visible import visible, visible_bytes
from components.vocabulary import marks_value, vocabulary_value
from components.widgets import table
from components.widgets.rail import Station
from components.widgets.table import Cell, Column, Tone
from engine.trace import Rendered, Stepped

STATION = "tokens"
MAX_ROWS = 200
MAX_STRETCHES = 24


@dataclass(frozen=True)
class Token:
    """One position of the context. `span` names where it stands, `whole` is the text of the characters it touches."""

    position: int
    token_id: int
    piece: str
    data: bytes
    span: str
    tone: Tone
    special: bool
    whole: str

    @property
    def split(self) -> bool:
        """True where the token holds a part of a character."""
        return not is_whole(self.data)


def stations(view: View) -> list[Station]:
    return [Station(STATION, words(STATION).title, *_line(view))]


def build() -> list[gr.components.Component]:
    say = words(STATION)
    return [
        titled(table.build, "tokens-table", say.text("table")),
        titled(table.build, "tokens-spans", say.text("spans"), height=520),
        titled(table.build, "tokens-vocabulary", say.text("vocabulary")),
        titled(table.build, "tokens-marks", say.text("marks")),
        titled(table.build, "tokens-answer", say.text("answer")),
    ]


def render(view: View) -> list[Any]:
    rendered = view.rendered
    assert rendered is not None
    tokens = select(rendered, view.steps)
    position = view.step.position if view.cursor.position is None and view.step else view.cursor.position
    return [
        table_value(tokens, position),
        spans_value(tokens),
        vocabulary_value(view.facts),
        marks_value(view.facts, rendered, view.steps),
        answer_value(view.steps),
    ]


def unavailable(view: View) -> str | None:
    return None if view.rendered else words(STATION).text("unavailable")


def select(rendered: Rendered, steps: Sequence[Stepped]) -> list[Token]:
    """All tokens of the turn so far: the context, then what was sampled."""
    say = words(STATION)
    pieces = [*rendered.token_bytes, *(step.token_bytes for step in steps)]
    whole = characters_touched(pieces)
    tokens = [
        Token(
            position=position,
            token_id=int(rendered.token_ids[position]),
            piece=rendered.pieces[position],
            data=rendered.token_bytes[position],
            span=_span_name(rendered, position),
            tone=role_colour(position_role(rendered, position)),
            special=bool(rendered.special[position]),
            whole=whole[position],
        )
        for position in range(len(rendered.token_ids))
    ]
    tokens += [
        Token(
            position=step.position,
            token_id=step.token_id,
            piece=step.piece,
            data=step.token_bytes,
            span=say.text("forced" if step.forced else "sampled", role="assistant"),
            tone="scaffold" if step.special else "assistant",
            special=step.special,
            whole=text,
        )
        for step, text in zip(steps, whole[len(rendered.token_ids) :], strict=True)
    ]
    return tokens


def stretches(tokens: Sequence[Token]) -> list[tuple[str, Tone, int]]:
    """Neighbouring tokens of one span counted together, as (span, tone, tokens); the counts add up to all."""
    found = []
    for span, members in groupby(tokens, key=lambda token: token.span):
        inside = list(members)
        found.append((span, inside[0].tone, len(inside)))
    return found


def table_value(tokens: Sequence[Token], position: int | None) -> dict[str, Any]:
    """One row a token; of a long context the rows around `position`."""
    say = words(STATION)
    first, last = window(len(tokens), len(tokens) - 1 if position is None else position)
    shown = tokens[first:last]
    columns = [
        Column(say.text("col_position"), align="right"),
        Column(say.text("col_id"), align="right"),
        Column(say.text("col_piece"), help=say.text("help_piece"), mono=True),
        Column(say.text("col_bytes"), help=say.text("help_bytes"), mono=True),
        Column(say.text("col_text"), help=say.text("help_text"), mono=True),
        Column(say.text("col_span")),
    ]
    rows = [_row(token) for token in shown]
    selected = next((row for row, token in enumerate(shown) if token.position == position), None)
    split, left = sum(token.split for token in tokens), len(tokens) - len(shown)
    key = "rows_cut" if left else "rows_all"
    caption = say.text(key, total=len(tokens), split=split, first=first, last=last - 1, left=left)
    keys = [{"position": token.position} for token in shown]
    return table.value(columns, rows, selected=selected, caption=caption, key=keys)


def window(total: int, center: int, size: int = MAX_ROWS) -> tuple[int, int]:
    """The stretch [first, last) of at most `size` of `total` rows around `center`."""
    first = max(0, min(center - size // 2, total - size))
    return first, min(total, first + size)


def spans_value(tokens: Sequence[Token]) -> dict[str, Any]:
    """How many tokens each stretch of the context has, with a running sum; a long chat's middle is one row."""
    say = words(STATION)
    columns = [
        Column(say.text("col_part")),
        Column(say.text("col_tokens"), align="right"),
        Column(say.text("col_sum"), align="right"),
    ]
    parts = _middle_joined(stretches(tokens))
    sums = accumulate(count for _, _, count in parts)
    rows: list[list[Cell | str]] = [
        [Cell(span, tone=tone), Cell(str(count), bar=count / len(tokens)), str(running)]
        for (span, tone, count), running in zip(parts, sums, strict=True)
    ]
    caption = say.text("sum_of", sum=" + ".join(str(count) for _, _, count in parts), total=len(tokens))
    return table.value(columns, rows, caption=caption)


def answer_value(steps: Sequence[Stepped]) -> dict[str, Any]:
    """The sampled tokens decoded with the special marks and without."""
    say = words(STATION)
    columns = [Column(say.text("col_way")), Column(say.text("col_decoded"), mono=True)]
    if not steps:
        return table.value(columns, [], caption=say.text("answer_none"))
    marks = sum(step.special for step in steps)
    rows = [
        [say.text("with_marks"), visible_bytes(b"".join(step.token_bytes for step in steps))],
        [say.text("without_marks"), visible_bytes(b"".join(step.token_bytes for step in steps if not step.special))],
    ]
    return table.value(columns, rows, caption=say.text("answer_note", count=marks, total=len(steps)))


def _row(token: Token) -> list[Cell | str]:
    title = words(STATION).text("part_of", text=token.whole) if token.split else ""
    return [
        str(token.position),
        str(token.token_id),
        visible(token.piece),
        token.data.hex(" ").upper(),
        Cell(visible_bytes(token.data), tone="accent" if token.split else "", title=title),
        Cell(token.span, tone=token.tone),
    ]


def _span_name(rendered: Rendered, position: int) -> str:
    say, index = words(STATION), int(rendered.span_index[position])
    if index < 0:
        return say.text("tokenizer_added")
    span = rendered.spans[index]
    return say.text("scaffold", role=span.role) if span.kind == "scaffold" else span.role


def _middle_joined(parts: list[tuple[str, Tone, int]]) -> list[tuple[str, Tone, int]]:
    if len(parts) <= MAX_STRETCHES:
        return parts
    head, tail = MAX_STRETCHES // 2, len(parts) - MAX_STRETCHES // 2 + 1
    middle = parts[head:tail]
    joined = words(STATION).text("sum_rest", count=len(middle))
    return [*parts[:head], (joined, "dim", sum(count for _, _, count in middle)), *parts[tail:]]


def _line(view: View) -> tuple[str, str]:
    """The rail's result and note."""
    say = words(STATION)
    if view.rendered is None:
        return "–", ""
    tokens = select(view.rendered, view.steps)
    split = sum(token.split for token in tokens)
    return f"{len(tokens):,}", say.text("station_split", count=split) if split else say.text("station_whole")
