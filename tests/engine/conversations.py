"""What the tests of conversations share: a small experiment, and what must be the same again."""

from collections.abc import Iterator
from typing import Any

from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.trace import Event, Rendered, Stepped, Stopped, Trace

SAMPLED = {"temperature": 1.2, "top_k": 50, "repetition_penalty": 1.1, "seed": 11}


def experiment(**fields: Any) -> Experiment:
    data = {
        "version": 1,
        "model": "tiny",
        "messages": [{"role": "user", "content": "the cat"}],
        "sampling": SAMPLED,
        "stop": {"max_new_tokens": 6},
    }
    if "prompt" in fields:
        del data["messages"]
    return Experiment.model_validate(data | fields)


def run(loaded: LoadedModel, experiment: Experiment) -> Iterator[Event]:
    """Run an experiment to its end and yield what happens."""
    conversation = Conversation(loaded, experiment)
    while events := conversation.advance():
        yield from events


def finish(conversation: Conversation) -> Trace:
    while conversation.advance():
        pass
    assert conversation.finished
    return conversation.trace


def ids(trace: Trace) -> list[tuple[int, int]]:
    return [(step.turn, step.token_id) for step in trace.of(Stepped)]


def told(events: tuple[Event, ...], *, bits: bool = True) -> list[Any]:
    """What must be the same again: everything but times (and, without `bits`, the last digits of logits)."""
    found: list[Any] = []
    for event in events:
        match event:
            case Rendered():
                found.append((event.turn, event.text, event.token_ids.tolist(), event.reused, event.parted))
            case Stepped():
                exact = (event.logits.tobytes(), event.draw and event.draw.u, event.shapes) if bits else ()
                found.append(
                    (event.turn, event.step, event.token_id, event.forced, event.text, event.held_bytes, exact)
                )
            case Stopped():
                found.append((event.turn, event.reason, event.evidence, event.text))
            case _:
                found.append((event.turn, event.kind))
    return found
