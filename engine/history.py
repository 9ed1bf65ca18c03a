"""What a turn is fed: the whole history so far, as messages, as one text and as tokens."""

from collections.abc import Sequence

from engine.experiment import ExperimentError, Message
from engine.model import LoadedModel
from engine.stages.template import TemplateError, render, render_raw
from engine.stages.tokens import tokenise
from engine.trace import Rendered, Trace


def messages_of(trace: Trace, turn: int) -> list[Message]:
    """The history that a turn answers: the experiment's messages, then answers and follow-ups in turn."""
    messages = list(trace.experiment.messages or ())
    for former, text in enumerate(trace.experiment.follow_ups[:turn]):
        messages += [
            Message(role="assistant", content=trace.answer(former)),
            Message(role="user", content=text),
        ]
    return messages


def render_turn(loaded: LoadedModel, trace: Trace, turn: int, messages: Sequence[Message] | None = None) -> Rendered:
    """A turn's whole history, or these messages in its place, as text and tokens; nothing is said yet of the cache.

    Raises `ExperimentError` where the model's template refuses the messages.
    """
    experiment, tokenizer = trace.experiment, loaded.tokenizer
    if experiment.prompt is not None:
        rendered = render_raw(experiment.prompt)
    else:
        try:
            rendered = render(tokenizer, messages_of(trace, turn) if messages is None else messages)
        except TemplateError as error:
            raise ExperimentError("messages", str(error)) from error
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
