"""How an answer ended, and how the template closed it in the turn after."""

from dataclasses import dataclass
from typing import Literal

from engine.trace import Rendered, Stepped, StopReason, Trace

#: Who ended the answer: the model with a mark of its own, a person who chose that mark, or something else.
Ended = Literal["said", "said_other", "person", "length", "stop_string", "other"]


@dataclass(frozen=True)
class Closing:
    """One answer's end. `last` is its newest token, which was chosen and never fed."""

    turn: int
    reason: StopReason
    ended: Ended
    last: bytes
    written: str | None  # what the template put after the answer; None where no turn followed or it cannot be told


def select(trace: Trace, turn: int) -> Closing | None:
    """The end of a turn's answer; None before it ended, or where it has no token."""
    stopped, steps, after = trace.stopped(turn), trace.steps(turn), trace.rendered(turn + 1)
    if stopped is None or not steps:
        return None
    written = _after_answer(after) if after else None
    return Closing(turn, stopped.reason, _ended(stopped.reason, steps[-1], written), steps[-1].token_bytes, written)


def _ended(reason: StopReason, last: Stepped, written: str | None) -> Ended:
    if reason == "eos" and last.forced:
        return "person"
    if reason == "eos":
        same = written is None or written.encode().startswith(last.token_bytes)
        return "said" if same else "said_other"
    if reason in ("length", "stop_string"):
        return "length" if reason == "length" else "stop_string"
    return "other"


def _after_answer(rendered: Rendered) -> str | None:
    """The scaffold that closes the newest answer of a context."""
    answers = [span for span in rendered.spans if span.role == "assistant" and span.message is not None]
    if not answers:
        return None
    own = [span for span in answers if span.message == answers[-1].message]
    contents = [place for place, span in enumerate(own) if span.kind == "content"]
    if not contents:
        return None  # an empty answer: what opens it and what closes it are one stretch
    return "".join(rendered.text[span.start : span.end] for span in own[contents[-1] + 1 :])
