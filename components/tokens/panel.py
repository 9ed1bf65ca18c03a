"""Station Tokens: every token of the context with its bytes and its span, and how they add up."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby, pairwise
from typing import Any

import gradio as gr
import numpy as np

from components.copy import words
from components.heading import titled
from components.panel import Controls, View
from components.roles import role_colour
from components.tokens.characters import characters_touched, is_whole
from components.tokens.merges import merges_value, tokenizers_value
from components.tokens.vocabulary import marks_value, vocabulary_value
from components.transcript_strip import position_role
from components.visible import visible, visible_bytes
from components.widgets import table
from components.widgets.rail import Station
from components.widgets.table import Cell, Column, Tone
from engine.trace import Rendered, Stepped

STATION = "tokens"
CONTROLS = Controls(asks=("tokenizers",), looks_up="query")
MAX_ROWS = 200
MAX_STRETCHES = 24
NEIGHBOURS = 8

Stretch = tuple[str, Tone, int]  # its name, its colour, its tokens


@dataclass(frozen=True)
class Token:
    """One position of the context. `span` names where it stands, `whole` is the text of the characters it touches."""

    position: int
    token_id: int
    piece: str
    data: bytes
    span: str
    tone: Tone
    whole: str

    @property
    def split(self) -> bool:
        """True where the token holds a part of a character."""
        return not is_whole(self.data)


def stations(view: View) -> list[Station]:
    return [Station(STATION, words(STATION).title, *_line(view))]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        titled(table.build, "tokens-table", say.text("table")),
        titled(table.build, "tokens-merges", say.text("merges"), height=420),
        titled(table.build, "tokens-tokenizers", say.text("tokenizers")),
        titled(table.build, "tokens-spans", say.text("spans"), height=520),
        titled(table.build, "tokens-vocabulary", say.text("vocabulary")),
        titled(table.build, "tokens-marks", say.text("marks")),
        titled(table.build, "tokens-answer", say.text("answer")),
    ]


def render(view: View) -> list[Any]:
    rendered, steps = view.rendered, view.steps
    assert rendered is not None
    position = steps[-1].position if view.cursor.position is None and steps else view.cursor.position
    return [
        table_value(rendered, steps, position),
        merges_value(view, len(rendered.token_ids) - 1 if position is None else position),
        tokenizers_value(view.results.get("tokenizers")),
        spans_value(stretches(rendered, steps)),
        vocabulary_value(view.facts),
        marks_value(view.facts, rendered, steps),
        answer_value(steps),
    ]


def unavailable(view: View) -> str | None:
    return None if view.rendered else words(STATION).text("unavailable")


def select(rendered: Rendered, steps: Sequence[Stepped], first: int, last: int) -> list[Token]:
    """The tokens at positions [first, last) of the turn so far: the context, then what was sampled."""
    pieces = [*rendered.token_bytes, *(step.token_bytes for step in steps)]
    # A character has at most four bytes: a few tokens more at either side complete those at the borders.
    begin = max(0, first - NEIGHBOURS)
    touched = characters_touched(pieces[begin : last + NEIGHBOURS])[first - begin :]
    count = len(rendered.token_ids)
    return [
        _context_token(rendered, position, whole)
        if position < count
        else _sampled_token(steps[position - count], whole)
        for position, whole in zip(range(first, last), touched, strict=False)
    ]


def stretches(rendered: Rendered, steps: Sequence[Stepped]) -> list[Stretch]:
    """Neighbouring tokens of one span counted together; the counts add up to all."""
    index = rendered.span_index
    borders = [0, *(np.flatnonzero(np.diff(index)) + 1).tolist(), len(index)]
    parts = [
        (_span_name(rendered, start), _span_tone(rendered, start), end - start)
        for start, end in pairwise(borders)
        if end > start
    ]
    parts += [(_step_name(step), "assistant", 1) for step in steps]
    return [
        (name, tone, sum(count for *_, count in members))
        for (name, tone), members in groupby(parts, key=lambda part: part[:2])
    ]


def table_value(rendered: Rendered, steps: Sequence[Stepped], position: int | None) -> dict[str, Any]:
    """One row a token; of a long context the rows around `position`."""
    say = words(STATION)
    total = len(rendered.token_ids) + len(steps)
    first, last = window(total, total - 1 if position is None else position)
    shown = select(rendered, steps, first, last)
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
    numbers = {"total": total, "split": split_tokens(rendered, steps), "left": total - len(shown)}
    key = "rows_cut" if numbers["left"] else "rows_all"
    caption = say.text(key, first=first, last=last - 1, **numbers)
    keys = [{"position": token.position} for token in shown]
    return table.value(columns, rows, selected=selected, caption=caption, key=keys)


def split_tokens(rendered: Rendered, steps: Sequence[Stepped]) -> int:
    """How many tokens hold a part of a character."""
    pieces = chain(rendered.token_bytes, (step.token_bytes for step in steps))
    return sum(not is_whole(piece) for piece in pieces)


def window(total: int, center: int, size: int = MAX_ROWS) -> tuple[int, int]:
    """The stretch [first, last) of at most `size` of `total` rows around `center`."""
    first = max(0, min(center - size // 2, total - size))
    return first, min(total, first + size)


def spans_value(parts: list[Stretch]) -> dict[str, Any]:
    """How many tokens each stretch of the context has, with a running sum; a long chat's middle is one row."""
    say = words(STATION)
    columns = [
        Column(say.text("col_part")),
        Column(say.text("col_tokens"), align="right"),
        Column(say.text("col_sum"), align="right"),
    ]
    parts = _middle_joined(parts)
    total = sum(count for _, _, count in parts)
    sums = accumulate(count for _, _, count in parts)
    rows: list[list[Cell | str]] = [
        [Cell(span, tone=tone), Cell(str(count), bar=count / total), str(running)]
        for (span, tone, count), running in zip(parts, sums, strict=True)
    ]
    caption = say.text("sum_of", sum=" + ".join(str(count) for _, _, count in parts), total=total)
    return table.value(columns, rows, caption=caption)


def answer_value(steps: Sequence[Stepped]) -> dict[str, Any]:
    """The sampled tokens decoded with the special marks and without."""
    say = words(STATION)
    if not steps:
        return table.value([], [], caption=say.text("answer_none"))
    columns = [Column(say.text("col_way")), Column(say.text("col_text_again"), mono=True)]
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


def _context_token(rendered: Rendered, position: int, whole: str) -> Token:
    return Token(
        position=position,
        token_id=int(rendered.token_ids[position]),
        piece=rendered.pieces[position],
        data=rendered.token_bytes[position],
        span=_span_name(rendered, position),
        tone=_span_tone(rendered, position),
        whole=whole,
    )


def _sampled_token(step: Stepped, whole: str) -> Token:
    tone: Tone = "scaffold" if step.special else "assistant"
    return Token(step.position, step.token_id, step.piece, step.token_bytes, _step_name(step), tone, whole)


def _span_tone(rendered: Rendered, position: int) -> Tone:
    return role_colour(position_role(rendered, position))


def _step_name(step: Stepped) -> str:
    return words(STATION).text("forced" if step.forced else "sampled", role="assistant")


def _span_name(rendered: Rendered, position: int) -> str:
    say, index = words(STATION), int(rendered.span_index[position])
    if index < 0:
        return say.text("tokenizer_added")
    span = rendered.spans[index]
    return say.text("scaffold", role=span.role) if span.kind == "scaffold" else span.role


def _middle_joined(parts: list[Stretch]) -> list[Stretch]:
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
    total, split = len(view.rendered.token_ids) + len(view.steps), split_tokens(view.rendered, view.steps)
    return f"{total:,}", say.text("station_split", count=split) if split else say.text("station_whole")
