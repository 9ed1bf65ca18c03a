"""How an answer ended, and how the template closed it in the turn after."""

from dataclasses import dataclass
from typing import Literal

from engine.dialogue import messages_of
from engine.trace import Rendered, Span, Stepped, StopReason, Trace

#: Who ended the answer: the model with a mark of its own, a person who chose that mark, something else, or something
#: else at the very token that is such a mark.
Ended = Literal["said", "said_other", "person", "length", "stop_string", "other", "mark_too"]
#: Why it cannot be told what the template put after the answer: no turn followed, the turn that followed has none of
#: the answer's text, or there is no text, so that what opens the answer and what closes it are one stretch.
Untold = Literal["not_followed", "left_out", "no_text"]


@dataclass(frozen=True)
class Closing:
    """One answer's end. `last` is its newest token, which was chosen and never fed."""

    turn: int
    reason: StopReason
    ended: Ended
    last: bytes
    written: str | None  # what the template put after the answer; None where `untold` says why not
    untold: Untold | None


def select(trace: Trace, turn: int) -> Closing | None:
    """The end of a turn's answer; None before it ended, or where it has no token."""
    stopped, steps, after = trace.stopped(turn), trace.steps(turn), trace.rendered(turn + 1)
    if stopped is None or not steps:
        return None
    own = _answer_in(after, len(messages_of(trace, turn))) if after else []
    written = _after_text(after, own) if after else None
    untold: Untold | None = None
    if after is None:
        untold = "not_followed"
    elif written is None:
        cut = trace.truncated(turn + 1) is not None and (not own or trace.answer(turn).strip())
        untold = "left_out" if cut else "no_text"
    ended = _ended(stopped.reason, steps[-1], written, trace.facts.eos_ids)
    return Closing(turn, stopped.reason, ended, steps[-1].token_bytes, written, untold)


def _ended(reason: StopReason, last: Stepped, written: str | None, eos_ids: tuple[int, ...]) -> Ended:
    if reason == "eos" and last.forced:
        return "person"
    if reason == "eos":
        same = written is None or written.encode().startswith(last.token_bytes)
        return "said" if same else "said_other"
    if last.token_id in eos_ids:
        return "mark_too"
    if reason in ("length", "stop_string"):
        return "length" if reason == "length" else "stop_string"
    return "other"


def _answer_in(rendered: Rendered, message: int) -> list[Span]:
    """The spans of an answer in a context that follows it; none where a context strategy left it out."""
    return [span for span in rendered.spans if span.role == "assistant" and span.message == message]


def _after_text(rendered: Rendered, own: list[Span]) -> str | None:
    """The scaffold that closes an answer, given its spans; None where they hold no text."""
    contents = [place for place, span in enumerate(own) if span.kind == "content"]
    if not contents:
        return None
    return "".join(rendered.text[span.start : span.end] for span in own[contents[-1] + 1 :])
