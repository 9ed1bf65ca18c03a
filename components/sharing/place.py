"""The place of a link: where a visit looks, and how a visit gets there once it exists."""

from typing import Any

from components.choices import chosen
from components.panel import Cursor, View
from components.visit import Visit
from engine.link import Link
from engine.trace import Trace


def looked_at(view: View, visit: Visit, *, another_run: bool) -> dict[str, Any]:
    """What the person looks at, as the fields of a link. Of `another_run` than the one in sight it holds no place, and
    no lesson, which would be opened in its stead.
    """
    cursor, usual = view.cursor, Cursor()
    place = {"layer": cursor.layer, "head": cursor.head, "station": visit.station, "language": visit.language}
    if not another_run:
        place |= _in_run(view)
        if visit.reading and visit.playing and visit.reading.plays(visit.playing.playback.record):
            place |= {"lesson": visit.reading.lesson_id, "note": visit.reading.note}
    names = {name: getattr(cursor, name) for name in ("figure", "operation")}
    return place | {name: now for name, now in names.items() if now != getattr(usual, name)}


def _in_run(view: View) -> dict[str, Any]:
    """Where in the run that is: the selected step of its turn, else the selected position of the context."""
    place: dict[str, Any] = {"turn": view.cursor.turn}
    if view.step is not None:
        return place | {"step": view.step.step}
    return place | ({} if view.cursor.position is None else {"position": view.cursor.position})


def look(view: View, visit: Visit, link: Link) -> None:
    """Layer, head, panel and language of the link, as far as this model and this page have them."""
    key = {name: getattr(link, name) for name in ("layer", "head", "figure", "operation")}
    visit.look_at(**chosen(view, key))
    if link.station is not None:
        visit.station = link.station


def land(visit: Visit, trace: Trace | None) -> None:
    """Move the cursor to the link's token once the run has made it; in a later turn it is not looked for any more."""
    link = visit.link
    if link is None or trace is None or trace.turns <= link.turn:
        return
    if trace.turns - 1 == link.turn:
        steps, rendered = trace.steps(link.turn), trace.rendered(link.turn)
        position = link.position
        if link.step is not None:
            if link.step >= len(steps):
                return
            position = steps[link.step].position
        if position is not None and rendered is not None and position < len(rendered.token_ids) + len(steps):
            visit.look_at(position=position)
    visit.link = None
