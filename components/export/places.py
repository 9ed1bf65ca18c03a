"""Where the cursor of an exported page can stand: the tokens of each turn, and the heads that were looked at."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from components.panel import Cursor, View

#: Of a turn's prompt, the newest positions that the cursor reaches.
PROMPT_POSITIONS = 64

#: What a record, or a running app, shows with the cursor there.
Look = Callable[[Cursor], View]


@dataclass(frozen=True)
class Place:
    """A position of a turn; `step` is that of its sampled token, None in the prompt."""

    turn: int
    position: int
    step: int | None


def places(view: View) -> list[Place]:
    """Every place of a run, turn by turn."""
    trace = view.trace
    found: list[Place] = []
    for turn in range(trace.turns if trace else 0):
        assert trace is not None
        rendered = trace.rendered(turn)
        prompt = len(rendered.token_ids) if rendered else 0
        found += [Place(turn, position, None) for position in range(max(0, prompt - PROMPT_POSITIONS), prompt)]
        found += [Place(turn, step.position, step.step) for step in trace.steps(turn)]
    return found


def looked(look: Look, place: Place, head: tuple[int, int]) -> View:
    """The view from a place, of the run as it was when that turn was the newest."""
    cursor = Cursor(turn=place.turn, position=place.position, layer=head[0], head=head[1])
    view = look(cursor)
    assert view.trace is not None
    events = tuple(event for event in view.trace.events if event.turn <= place.turn)
    return replace(view, cursor=cursor, trace=replace(view.trace, events=events))
