"""What a note shows: how much of the run was made, and the cursor on it. Pure functions."""

from typing import Any

from components.panel import FIGURES, OPERATIONS, Cursor
from engine.facts import ModelFacts
from engine.lessons import LessonError, Place
from engine.trace import Trace


def tokens_made(trace: Trace, place: Place) -> int:
    """How many tokens, over all turns, are made where the note looks: to the end of its turn, or as it says itself.

    Raises `LessonError` for a turn or a token that the run does not have.
    """
    if place.turn >= trace.turns:
        raise LessonError(f"cursor.turn: there is no turn {place.turn}; the run has turns 0 to {trace.turns - 1}")
    before = sum(len(trace.steps(turn)) for turn in range(place.turn))
    whole = len(trace.steps(place.turn))
    if place.made is None:
        return before + whole
    if place.made > whole:
        raise LessonError(f"cursor.made: {place.made} tokens are asked for; turn {place.turn} has {whole}")
    if place.made == 0 and place.turn > 0:
        raise LessonError("cursor.made: a later turn is in sight from its first token on; say 1 or more")
    return before + place.made


def cursor(trace: Trace, place: Place) -> Cursor:
    """The cursor on a trace of which so many tokens are made. Raises `LessonError` for what is not there."""
    rendered = trace.rendered(place.turn)
    if rendered is None:
        raise LessonError(f"cursor.turn: turn {place.turn} made no token, so there is nothing to look at")
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
