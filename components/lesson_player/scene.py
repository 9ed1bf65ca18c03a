"""What a note shows: the trace as it stood, and the cursor on it. Pure functions."""

from dataclasses import replace
from typing import Any

from components.panel import FIGURES, OPERATIONS, Cursor
from engine.facts import ModelFacts
from engine.lessons import LessonError, Place
from engine.trace import Event, Stepped, Stopped, ToolCalled, Trace


def stood(trace: Trace, place: Place) -> Trace:
    """The trace at the end of the note's turn, or as it was when `made` tokens of that turn were made.

    Raises `LessonError` for a turn or a token that the run does not have.
    """
    if place.turn >= trace.turns:
        raise LessonError(f"cursor.turn: there is no turn {place.turn}; the run has turns 0 to {trace.turns - 1}")
    whole = len(trace.steps(place.turn))
    if place.made is not None and place.made > whole:
        raise LessonError(f"cursor.made: {place.made} tokens are asked for; turn {place.turn} has {whole}")
    events = (event for event in trace.events if event.turn <= place.turn and not _after(event, place))
    return replace(trace, events=tuple(events))


def cursor(trace: Trace, place: Place) -> Cursor:
    """The cursor on a trace that `stood` gave. Raises `LessonError` for what is not there."""
    rendered = trace.rendered(place.turn)
    assert rendered is not None
    prompt, steps = len(rendered.token_ids), len(trace.steps(place.turn))
    position = place.position
    if place.step is not None:
        _within("step", place.step, steps, f"turn {place.turn} has {steps} tokens here, counted from 0")
        position = prompt + place.step
    if position is not None:
        _within("position", position, prompt + steps, f"turn {place.turn} has {prompt + steps} positions here, from 0")
    _in_the_model(place, trace.facts)
    chosen: dict[str, Any] = {name: getattr(place, name) for name in ("figure", "operation") if getattr(place, name)}
    return Cursor(
        turn=place.turn,
        position=position,
        layer=place.layer,
        head=place.head,
        query=place.query,
        formula=place.formula,
        **chosen,
    )


def _after(event: Event, place: Place) -> bool:
    """True for what came only after `made` tokens of the turn were made."""
    if place.made is None or event.turn != place.turn:
        return False
    return event.step >= place.made if isinstance(event, Stepped) else isinstance(event, Stopped | ToolCalled)


def _in_the_model(place: Place, facts: ModelFacts) -> None:
    for name, count in (("layer", facts.layers), ("head", facts.heads)):
        _within(name, getattr(place, name), count, f"this model has {name}s 0 to {count - 1}")
    for name, known in (("figure", FIGURES), ("operation", OPERATIONS)):
        chosen = getattr(place, name)
        if chosen is not None and chosen not in known:
            raise LessonError(f"cursor.{name}: unknown {chosen!r}; known: {', '.join(known)}")


def _within(name: str, value: int, count: int, said: str) -> None:
    if value >= count:
        raise LessonError(f"cursor.{name}: there is no {name} {value}; {said}")
