"""What a turn is fed: the whole history so far, as messages, as one text and as tokens."""

from collections.abc import Sequence

from engine.dialogue import entries, messages_of
from engine.experiment import ExperimentError, Message
from engine.model import LoadedModel
from engine.stages.definitions import carve, render_with_tools
from engine.stages.template import RenderedText, TemplateError, render, render_raw
from engine.stages.tokens import tokenise
from engine.stages.vocabulary import Vocabulary, vocabulary
from engine.tools.registry import tools_named
from engine.trace import Rendered, Trace

#: Characters [start, end) of an answer that were single tokens of the model's own.
Marks = dict[str, list[tuple[int, int]]]


def render_turn(loaded: LoadedModel, trace: Trace, turn: int, messages: Sequence[Message] | None = None) -> Rendered:
    """A turn's whole history, or these messages in its place, as text and tokens; nothing is said yet of the cache.

    Raises `ExperimentError` where the model's template refuses the messages.
    """
    experiment, tokenizer = trace.experiment, loaded.tokenizer
    if experiment.prompt is not None:
        rendered = render_raw(experiment.prompt)
    else:
        messages = messages_of(trace, turn) if messages is None else messages
        try:
            rendered = _rendered(loaded, trace, messages)
        except TemplateError as error:
            raise ExperimentError("messages", error.args[0]) from error
        rendered = _with_own_marks(rendered, messages, own_marks(trace, turn, vocabulary(tokenizer)))
    tokens = tokenise(
        tokenizer,
        rendered.text,
        rendered.spans,
        templated=experiment.prompt is None,
        obey_marks=experiment.obey_marks_in_content,
    )
    return Rendered(
        turn=turn,
        text=rendered.text,
        spans=rendered.spans,
        token_ids=tokens.ids,
        span_index=tokens.span_index,
        pieces=tokens.pieces,
        token_bytes=tokens.token_bytes,
        special=tokens.special,
        marks_in_content=tokens.marks_in_content,
        reused=0,
        parted=None,
    )


def _rendered(loaded: LoadedModel, trace: Trace, messages: Sequence[Message]) -> RenderedText:
    tools = tools_named(trace.experiment.tools)
    if not tools:
        return render(loaded.tokenizer, messages)
    return render_with_tools(loaded.tokenizer, messages, [tool.definition for tool in tools])


def own_marks(trace: Trace, turn: int, words: Vocabulary) -> Marks:
    """By the text of each earlier answer, where the model itself chose a control mark that shows (<tool_call>).

    They stay marks when the answer is read back; what is only spelled like one stays plain text, as in any message.
    """
    found: Marks = {}
    for entry in entries(trace, turn):
        if entry.answer_of is None:
            continue
        steps = trace.steps(entry.answer_of)
        places, at = [], 0
        for step in steps:
            mark = words.added[step.token_id].content if words.is_mark(step.token_id) else ""
            if mark and step.text.endswith(mark):
                places.append((at + len(step.text) - len(mark), at + len(step.text)))
            at += len(step.text)
        if places:
            found[entry.message.content] = places
    return found


def _with_own_marks(rendered: RenderedText, messages: Sequence[Message], marks: Marks) -> RenderedText:
    spans = rendered.spans
    for span in rendered.spans:
        if span.kind != "content" or span.message is None or span.role != "assistant":
            continue
        content, piece = messages[span.message].content, rendered.text[span.start : span.end]
        offset = span.start - content.find(piece)
        for start, end in marks.get(content, ()):
            if span.start <= start + offset and end + offset <= span.end:
                spans = carve(spans, start + offset, end + offset, role="assistant", message=span.message)
    return RenderedText(rendered.text, spans)
