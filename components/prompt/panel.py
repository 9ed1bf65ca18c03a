"""Station Prompt: messages become one text, scaffold apart from content, with what the template added itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import gradio as gr

from components.compose import transcript
from components.copy import sentences, words
from components.heading import titled
from components.panel import Controls, View
from components.prompt.compare import Answer, answer_of, compare_value
from components.roles import role_colour
from components.visible import running_text
from components.widgets import table, token_strip
from components.widgets.rail import Station
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Chip, Group
from engine.trace import Rendered, Span, Trace

STATION = "prompt"
CONTROLS = Controls(asks=("without_template",))

#: A mark by which each well-known template format is told.
FORMATS = (
    ("<|im_start|>", "ChatML"),
    ("<|start_header_id|>", "Llama 3"),
    ("<start_of_turn>", "Gemma"),
    ("[INST]", "Mistral"),
    ("<|assistant|>", "Zephyr"),
)


@dataclass(frozen=True)
class Part:
    """One message as rendered: its spans, and the positions [first, first + tokens) that they became."""

    role: str
    message: int | None
    spans: tuple[Span, ...]
    first: int
    tokens: int
    scaffold_tokens: int

    @property
    def has_content(self) -> bool:
        return any(span.kind == "content" for span in self.spans)


def stations(view: View) -> list[Station]:
    return [Station(STATION, words(STATION).title, *_line(view))]


def build() -> list[gr.HTML]:
    say = words(STATION)
    components = [
        titled(token_strip.build, "prompt-strip", say.text("strip"), height=520),
        titled(table.build, "prompt-parts", say.text("parts")),
        titled(table.build, "prompt-compare", say.text("compare")),
    ]
    with gr.Accordion(say.text("template"), open=False, elem_classes="fold"):
        source = token_strip.build("prompt-source", say.text("template"), height=420)
    return [*components, source]


def render(view: View) -> list[Any]:
    rendered, trace = view.rendered, view.trace
    assert trace is not None
    assert rendered is not None
    parts = select(rendered)
    position = view.cursor.position
    raw = trace.experiment.prompt is not None
    return [
        strip_value(rendered, parts, raw=raw, position=position),
        parts_value(rendered, parts, trace, position=position),
        compare_value(*_answers(trace, view)),
        source_value(view.facts.chat_template),
    ]


def unavailable(view: View) -> str | None:
    return None if view.rendered else words(STATION).text("unavailable")


def format_name(template: str | None) -> str:
    """The name of the template's format, told by its marks."""
    if template is None:
        return words(STATION).text("format_none")
    return next((name for mark, name in FORMATS if mark in template), words(STATION).text("format_own"))


def select(rendered: Rendered) -> list[Part]:
    """The messages in order of appearance; tokens that the tokenizer put in on its own are in none of them."""
    parts = []
    for (role, message), members in groupby(
        enumerate(rendered.spans), key=lambda item: (item[1].role, item[1].message)
    ):
        indices, spans = zip(*members, strict=True)
        counts = [int((rendered.span_index == index).sum()) for index in indices]
        scaffold = sum(count for count, span in zip(counts, spans, strict=True) if span.kind == "scaffold")
        parts.append(Part(role, message, spans, _first_position(rendered, indices[0]), sum(counts), scaffold))
    return parts


def source_value(template: str | None) -> dict[str, Any]:
    """The template's own source as plain text."""
    text = template or words(STATION).text("no_template")
    return token_strip.value([Group(chips=[Chip(text=text, position=-1)], as_text=True)])


def strip_value(rendered: Rendered, parts: Sequence[Part], *, raw: bool, position: int | None) -> dict[str, Any]:
    """The text as it stands, one chip a span; the span of the selected position is marked."""
    say = words(STATION)
    groups = [
        Group(
            chips=[_chip(rendered, span) for span in part.spans if span.end > span.start],
            label=part.role,
            role=role_colour(part.role),
            note=say.text("raw") if raw else _note(part, last=part is parts[-1]),
            as_text=True,
        )
        for part in parts
    ]
    chosen = None
    if position is not None and position < len(rendered.span_index) and rendered.span_index[position] >= 0:
        chosen = _first_position(rendered, int(rendered.span_index[position]))
    roles = dict.fromkeys(part.role for part in parts if part.has_content)
    legend = [*((role, role) for role in roles), ("scaffold", say.text("scaffold"))]
    return token_strip.value(groups, selected=chosen, legend=legend)


def parts_value(rendered: Rendered, parts: Sequence[Part], trace: Trace, *, position: int | None) -> dict[str, Any]:
    """One row a message: who wrote it, where it lies in the text and in the context; the last row adds up."""
    say = words(STATION)
    columns = [
        Column(say.text("col_part")),
        Column(say.text("col_from")),
        Column(say.text("col_characters"), align="right"),
        Column(say.text("col_tokens"), align="right"),
        Column(say.text("col_positions"), align="right"),
    ]
    total = len(rendered.token_ids)
    rows: list[list[Cell | str]] = []
    keys: list[int] = []
    outside = total - sum(part.tokens for part in parts)
    if outside:
        rows.append([Cell(say.text("tokenizer_added"), tone="scaffold"), "", "0", str(outside), ""])
        keys.append(int((rendered.span_index < 0).argmax()))
    for part in parts:
        characters = sum(span.end - span.start for span in part.spans)
        extent = f"{part.first}–{part.first + part.tokens - 1}" if part.tokens else "–"
        tokens = Cell(str(part.tokens), bar=part.tokens / total)
        rows.append(
            [
                Cell(part.role, tone=role_colour(part.role)),
                say.text(_author(part, trace, rendered.turn)),
                str(characters),
                tokens,
                extent,
            ]
        )
        keys.append(part.first)
    rows.append([say.text("total"), "", str(len(rendered.text)), str(total), f"0–{total - 1}"])
    keys.append(total - 1)
    selected = next(
        (
            i
            for i, part in enumerate(parts, start=bool(outside))
            if position is not None and part.first <= position < part.first + part.tokens
        ),
        None,
    )
    told = [
        _share(parts, total),
        *([say.text("share_tokenizer", count=outside)] if outside else []),
        _marks(rendered, obeyed=trace.experiment.obey_marks_in_content),
    ]
    return table.value(columns, rows, selected=selected, caption=sentences(*told), key=[{"position": p} for p in keys])


def _answers(trace: Trace, view: View) -> tuple[Answer | None, Answer | None]:
    """What the selected turn gave, and the same question without the template; a raw run has only the latter.

    What was asked of another turn, or of a run before this one, is no answer to this question.
    """
    own = answer_of(trace, view.cursor.turn)
    if trace.experiment.prompt is not None:
        return None, own
    other: Trace | None = view.results.get("without_template")
    if other is None or other.experiment.prompt != transcript(trace, view.cursor.turn)[-1]["content"]:
        return own, None
    return own, answer_of(other, 0)


def _chip(rendered: Rendered, span: Span) -> Chip:
    say = words(STATION)
    return Chip(
        text=running_text(rendered.text[span.start : span.end]),
        position=_first_position(rendered, rendered.spans.index(span)),
        role=role_colour(span.role) if span.kind == "content" else "scaffold",
        title=say.text("strip_part", role=span.role, kind=say.text(span.kind), start=span.start, end=span.end),
    )


def _first_position(rendered: Rendered, index: int) -> int:
    """The first token of the span, or of what follows where the span has none of its own."""
    return int((rendered.span_index >= index).argmax())


def _note(part: Part, *, last: bool) -> str:
    if part.message is not None:
        return ""
    if part.role == "tool":
        return words(STATION).text("tool_definitions")
    if part.has_content:
        return words(STATION).text("default_system")
    return words(STATION).text("generation_prompt" if last else "marks")


def _author(part: Part, trace: Trace, turn: int) -> str:
    if part.message is None:
        return "by_template" if trace.experiment.prompt is None else "by_you"
    cut = trace.truncated(turn)
    if cut is not None and cut.summary and part.message > max(portion.message or 0 for portion in cut.portions):
        return "by_app" if part.role == "user" else "by_model_now"
    if part.role not in ("assistant", "tool"):
        return "by_you"
    # A chat that is begun anew is given its earlier answers and results as messages: who wrote them is not known.
    if part.message < len(trace.experiment.messages or ()):
        return f"given_{part.role}"
    return "by_tool" if part.role == "tool" else "by_model"


def _share(parts: Sequence[Part], total: int) -> str:
    scaffold = sum(part.scaffold_tokens for part in parts)
    content = sum(part.tokens for part in parts) - scaffold
    return words(STATION).text("share", scaffold=scaffold, content=content, total=total)


def _marks(rendered: Rendered, *, obeyed: bool) -> str:
    say = words(STATION)
    if not rendered.marks_in_content:
        return say.text("marks_none")
    return say.text("marks_obeyed" if obeyed else "marks_neutral", count=rendered.marks_in_content)


def _line(view: View) -> tuple[str, str]:
    """The rail's result and note."""
    say, rendered = words(STATION), view.rendered
    result = say.text("station", tokens=len(rendered.token_ids)) if rendered else "–"
    raw = view.trace is not None and view.trace.experiment.prompt is not None
    return result, say.text("station_raw") if raw else format_name(view.facts.chat_template)
