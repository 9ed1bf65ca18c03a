"""Tool definitions in the prompt: by the model's own template where it has a place for them, else in the system prompt.

Whether a template has one is found out by asking it: its text must change when tools are given, and must teach the
marks by which calls are found here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from transformers import PreTrainedTokenizerFast

from engine.dialogue import FALLBACK_OPENING
from engine.experiment import Message
from engine.said import said
from engine.stages.template import RenderedText, TemplateError, render
from engine.trace import Span

Definitions = Sequence[Mapping[str, Any]]

#: What stands in the system prompt of a model whose template knows no tools.
FALLBACK = """{opening}
{definitions}
To use one, answer with
<tool_call>
{{"name": "the tool", "arguments": {{"argument": "value"}}}}
</tool_call>
Then say the result to the user."""

_MARK = "<tool_call>"


def supports(tokenizer: PreTrainedTokenizerFast, definitions: Definitions) -> bool:
    """True where the model's own template writes these definitions and teaches the marks of a call."""
    asked = [Message(role="user", content="?")]
    try:
        plain, told = render(tokenizer, asked), render(tokenizer, asked, tools=definitions)
    except TemplateError:
        return False
    names = [str(one["function"]["name"]) for one in definitions]
    return told.text != plain.text and _MARK in told.text and all(name in told.text for name in names)


def fallback_text(definitions: Definitions) -> str:
    """The definitions, a line each, and how to call."""
    lines = [json.dumps(one["function"], ensure_ascii=False) for one in definitions]
    return FALLBACK.format(opening=FALLBACK_OPENING, definitions="\n".join(lines))


def render_with_tools(
    tokenizer: PreTrainedTokenizerFast, messages: Sequence[Message], definitions: Definitions
) -> RenderedText:
    """The messages with the definitions, which are a span of their own: role tool, scaffold, of no message."""
    if not supports(tokenizer, definitions):
        return _with_fallback(tokenizer, messages, fallback_text(definitions))
    told = render(tokenizer, messages, tools=definitions)
    plain = render(tokenizer, messages).text
    start = _shared(told.text, plain)
    room = min(len(told.text), len(plain)) - start
    end = len(told.text) - _shared(told.text[::-1][:room], plain[::-1][:room])
    return RenderedText(told.text, carve(told.spans, start, end, role="tool", message=None, from_content=False))


def _shared(one: str, other: str) -> int:
    """Characters that both texts begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _with_fallback(tokenizer: PreTrainedTokenizerFast, messages: Sequence[Message], text: str) -> RenderedText:
    """The definitions after the system message that is given, or as a system message of their own."""
    first = messages[0]
    if first.role == "system":
        text = f"\n\n{text}"
        joined = first.model_copy(update={"content": f"{first.content}{text}"})
        rendered, shift = render(tokenizer, [joined, *messages[1:]]), 0
    else:
        rendered, shift = render(tokenizer, [Message(role="system", content=text), *messages]), 1
    start = rendered.text.find(text)
    if start < 0:
        raise TemplateError(said("no_system_prompt"))
    spans = tuple(_shifted(span, shift) for span in rendered.spans)
    return RenderedText(rendered.text, carve(spans, start, start + len(text), role="tool", message=None))


def _shifted(span: Span, by: int) -> Span:
    """A span of the messages without the system message that was put before them."""
    if span.message is None or not by:
        return span
    return replace(span, message=span.message - by if span.message >= by else None)


def carve(
    spans: Sequence[Span], start: int, end: int, *, role: str, message: int | None, from_content: bool = True
) -> tuple[Span, ...]:
    """The spans with characters [start, end) made scaffold of this role and message; content only where it may be."""
    carved: list[Span] = []
    for span in spans:
        low, high = max(span.start, start), min(span.end, end)
        if low >= high or (span.kind == "content" and not from_content):
            carved.append(span)
            continue
        mine = Span(low, high, role, message, "scaffold")
        if carved and carved[-1].end == low and replace(carved[-1], start=0, end=0) == replace(mine, start=0, end=0):
            mine = replace(mine, start=carved.pop().start)
        parts = (replace(span, end=low), mine, replace(span, start=high))
        carved += [part for part in parts if part.start < part.end]
    return tuple(carved)
