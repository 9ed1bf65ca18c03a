"""The messages of a run as they grow: what was given, what the model answered, what its tools gave back."""

from dataclasses import dataclass
from itertools import islice

from engine.experiment import Message
from engine.trace import ToolCalled, Trace

#: How the text begins that tells of tools where the model's own template cannot.
FALLBACK_OPENING = "You can use these tools:"


@dataclass(frozen=True)
class Entry:
    """One message, and the turn whose answer it is; None for what was given or came from a tool."""

    message: Message
    answer_of: int | None = None


def entries(trace: Trace, turn: int) -> list[Entry]:
    """The history that a turn answers: the messages given, then answers, results of tools, and follow-ups.

    A turn that ended in calls is followed by a tool message for each of them, any other by the next follow-up.
    """
    found = [Entry(message) for message in trace.experiment.messages or ()]
    follow_ups = iter(trace.experiment.follow_ups)
    for former in range(turn):
        found.append(Entry(Message(role="assistant", content=trace.answer(former)), former))
        stopped = trace.stopped(former)
        if stopped is not None and stopped.reason == "tool_call":
            found += [Entry(Message(role="tool", content=told(called))) for called in trace.of(ToolCalled, former)]
        else:
            found += [Entry(Message(role="user", content=text)) for text in islice(follow_ups, 1)]
    return found


def messages_of(trace: Trace, turn: int) -> list[Message]:
    """The history that a turn answers."""
    return [entry.message for entry in entries(trace, turn)]


def told(called: ToolCalled) -> str:
    """What goes back to the model."""
    return called.result if called.error is None and called.result is not None else f"Error: {called.error}"


def rounds_before(trace: Trace, turn: int) -> int:
    """How many turns right before this one ended in calls: the rounds that its user message has seen."""
    count = 0
    while count < turn and _called(trace, turn - 1 - count):
        count += 1
    return count


def _called(trace: Trace, turn: int) -> bool:
    stopped = trace.stopped(turn)
    return stopped is not None and stopped.reason == "tool_call"
