"""Messages to one string by the model's chat template, every character told apart by whose it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

import jinja2
from transformers import PreTrainedTokenizerFast

from engine.experiment import Message
from engine.said import said
from engine.stages.contents import Located, free_characters, locate
from engine.stages.vocabulary import vocabulary
from engine.trace import Span


class TemplateError(ValueError):
    """The messages cannot be rendered; the message says why in words for a person."""


@dataclass(frozen=True)
class RenderedText:
    """A text and its spans, which partition it in order; no span is empty."""

    text: str
    spans: tuple[Span, ...]


def render_raw(prompt: str) -> RenderedText:
    """A prompt without a template: one stretch of content."""
    return RenderedText(prompt, tuple(_spans([_Cut(len(prompt), "user", 0, "content")])))


def render(
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[Message],
    *,
    add_generation_prompt: bool = True,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> RenderedText:
    """The text is exactly that of `apply_chat_template`; `tools` are definitions as it takes them.

    Results of tools are user messages where the template has no words for the role "tool".

    The scaffold that opens a content and the scaffold that closes it belong to that message. What the template adds on
    its own has no message: a default system prompt (role system) and the generation prompt (role assistant).
    Raises TemplateError where there is no template, where it refuses the messages, and where a message that holds
    control marks cannot be found in the text (its marks could not be told from the template's own).
    """
    if tokenizer.chat_template is None:
        raise TemplateError(said("no_template"))
    template = _Template(tokenizer, add_generation_prompt, tools)
    text = template.apply(messages)
    located = locate(template.apply, messages, text)
    for index in located.lost:
        _refuse_marks(tokenizer, index, messages[index].content)
    cuts = [*_default_system(template, messages, located, text), *_cuts(template, messages, located, text)]
    return RenderedText(text, tuple(_spans(cuts)))


@dataclass(frozen=True)
class _Template:
    tokenizer: PreTrainedTokenizerFast
    add_generation_prompt: bool
    tools: Sequence[Mapping[str, Any]] | None = None

    def apply(self, messages: Sequence[Message], *, generation_prompt: bool | None = None) -> str:
        prompt = self.add_generation_prompt if generation_prompt is None else generation_prompt
        plain: list[dict[str, str]] = [{"role": message.role, "content": message.content} for message in messages]
        results = [message.content.strip() for message in messages if message.role == "tool"]
        refused: TemplateError | None = None
        try:
            text = self._write(plain, prompt)
        except TemplateError as error:
            refused = error
        if refused is None and all(result in text for result in results):
            return text
        if refused is not None and not results:
            raise refused
        return self._write(list(_results_as_user(plain)), prompt)

    def _write(self, plain: Sequence[dict[str, str]], prompt: bool) -> str:
        options: dict[str, Any] = {} if self.tools is None else {"tools": list(self.tools)}
        try:
            text = self.tokenizer.apply_chat_template(
                list(plain), tokenize=False, add_generation_prompt=prompt, **options
            )
        except jinja2.TemplateError as error:
            raise TemplateError(said("template_refuses", error=str(error))) from error
        return str(text)

    def after(self, mark: str, messages: Sequence[Message]) -> str:
        """What the template writes after the last `mark` in `messages` alone; "" where that cannot be told."""
        try:
            text = self.apply(messages, generation_prompt=False)
        except TemplateError:
            return ""
        return text.rpartition(mark)[2] if mark and mark in text else ""


def _results_as_user(plain: Sequence[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Neighbouring results of tools in one user message, for templates that know no other role."""
    for is_result, run in groupby(plain, key=lambda message: message["role"] == "tool"):
        if is_result:
            marked = (f"<tool_response>\n{message['content']}\n</tool_response>" for message in run)
            yield {"role": "user", "content": "\n".join(marked)}
        else:
            yield from run


class _Cut(NamedTuple):
    """The stretch up to `end`, from where the cut before it ends."""

    end: int
    role: str
    message: int | None
    kind: Literal["scaffold", "content"] = "scaffold"


def _cuts(template: _Template, messages: Sequence[Message], located: Located, text: str) -> Iterator[_Cut]:
    """Contents, and between two of them the marks that close the first and those that open the second."""
    closings: dict[tuple[str, str, str], int] = {}  # one render for each kind of gap, however many messages there are
    for earlier, later in zip((None, *located.found), located.found, strict=False):
        if earlier is not None and earlier.message != later.message:
            gap = text[earlier.end : later.start]
            key = (messages[earlier.message].role, messages[later.message].role, gap)
            if key not in closings:
                upto = located.wrapped[: earlier.message + 1]
                closing = template.after(located.closers[earlier.message], upto)
                closings[key] = len(closing) if gap.startswith(closing) else 0
            yield _Cut(earlier.end + closings[key], messages[earlier.message].role, earlier.message)
        role = messages[later.message].role
        yield _Cut(later.start, role, later.message)
        yield _Cut(later.end, role, later.message, "content")
    last = located.found[-1].message if located.found else len(messages) - 1
    closed = template.apply(messages, generation_prompt=False)
    prompt = len(text) - len(closed) if text.startswith(closed) else 0
    yield _Cut(len(text) - prompt, messages[last].role, last)
    yield _Cut(len(text), "assistant", None)


def _default_system(template: _Template, messages: Sequence[Message], located: Located, text: str) -> Iterator[_Cut]:
    """The system prompt that the template writes where none is given: what an explicit one takes the place of."""
    if any(message.role == "system" for message in messages):
        return
    mark = next(free_characters([text]), None)
    if mark is None:
        return
    system = Message(role="system", content=mark)
    try:
        opening, found, rest = template.apply([system, *messages]).partition(mark)
    except TemplateError:
        return
    start, end = len(opening), len(text) - len(rest)
    head = located.found[0].start if located.found else len(text)
    if not found or not start <= end <= head or not text.startswith(opening) or not text.endswith(rest):
        return
    closing = template.after(mark, [system])
    close = end + len(closing)
    if not text.startswith(closing, end) or close > head:
        close = end
    if start == close:
        return  # only where a system prompt would stand, nothing that belongs to one
    yield _Cut(start, "system", None)
    yield _Cut(end, "system", None, "content")
    yield _Cut(close, "system", None)


def _spans(cuts: Sequence[_Cut]) -> Iterator[Span]:
    """Spans of the cuts: empty ones left out, scaffold of one owner in one piece."""
    held: Span | None = None
    start = 0
    for end, role, message, kind in cuts:
        if end <= start:
            continue
        span = Span(start, end, role, message, kind)
        if held and kind == "scaffold" and (held.role, held.message, held.kind) == (role, message, kind):
            held = Span(held.start, end, role, message, kind)
        else:
            if held:
                yield held
            held = span
        start = end
    if held:
        yield held


def _refuse_marks(tokenizer: PreTrainedTokenizerFast, index: int, content: str) -> None:
    words = vocabulary(tokenizer)
    mark = next(
        (token.content for key, token in words.added.items() if words.is_mark(key) and token.content in content), None
    )
    if mark:
        raise TemplateError(said("mark_in_message", number=index + 1, mark=mark))
