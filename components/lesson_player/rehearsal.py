"""A note played without a page: what its panel draws, and with that what it asks of the model."""

from typing import Any, Protocol

from components.lesson_player.places import PANEL_OF, buttons, parts, station_of
from components.lesson_player.scene import cursor
from components.panel import View
from components.visit import Visit
from engine.lessons import LessonError, Note
from engine.trace import Trace


class Stage(Protocol):
    """The part of the desk that a note needs."""

    def view(self, visit: Visit) -> View: ...
    def ask(self, visit: Visit, probe: str) -> None: ...


def rehearse(desk: Stage, trace: Trace, note: Note) -> list[Any]:
    """The values that the note's panel draws on a trace that `stood` gave; the desk shows that trace.

    Raises `LessonError` where the panel or its part has nothing to show, or a button is not one of it.
    """
    panel = PANEL_OF[note.panel]
    visit = Visit("lesson", station=station_of(note.panel), cursor=cursor(trace, note.cursor))
    for name in note.press:
        if name not in buttons(panel):
            known = ", ".join(buttons(panel)) or "none"
            raise LessonError(f"press: {panel.STATION} has no button {name!r} that a note may press; it has: {known}")
        desk.ask(visit, name)
        if visit.notice:
            raise LessonError(f"press: {name}: {visit.notice}")
    view = desk.view(visit)
    reason = panel.unavailable(view)
    if reason:
        raise LessonError(f"panel: {panel.STATION} has nothing to show here: {reason}")
    drawn: list[Any] = panel.render(view)
    if note.part is not None:
        shown = [name for name, value in zip(parts()[note.panel], drawn, strict=False) if value is not None]
        if note.part not in shown:
            raise LessonError(f"part: {note.part} is not there just now; what is: {', '.join(shown)}")
    return drawn
