"""Station Context: what of a long history the turn is fed, what has left, what that costs, and the other ways."""

from typing import Any

import gradio as gr

from components.context.compare import compare_value
from components.context.history import history_value, select
from components.context.notes import notes
from components.copy import words
from components.heading import titled
from components.panel import Controls, View
from components.widgets import table, token_strip
from components.widgets.rail import Station

STATION = "context"
CONTROLS = Controls(asks=("policies",))


def stations(view: View) -> list[Station]:
    return [Station(STATION, words(STATION).title, *_line(view))]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        token_strip.build("context-notes", say.text("notes"), height=900),
        titled(table.build, "context-history", say.text("history")),
        titled(table.build, "context-policies", say.text("compare"), height=520),
    ]


def render(view: View) -> list[Any]:
    assert view.trace is not None and view.rendered is not None
    context = view.trace.experiment.context
    positions = context.positions if context.strategy == "sliding_window" else "go_on"
    return [
        token_strip.value(notes(view)),
        history_value(select(view.trace, view.rendered), view.trace.truncated(view.cursor.turn)),
        compare_value(view.results.get("policies"), (context.strategy, positions), view.cursor.turn),
    ]


def unavailable(view: View) -> str | None:
    return None if view.rendered else words(STATION).text("unavailable")


def _line(view: View) -> tuple[str, str]:
    """The rail's result and note."""
    say = words(STATION)
    if view.trace is None or view.rendered is None:
        return "–", ""
    truncated = view.trace.truncated(view.cursor.turn)
    strategy = view.trace.experiment.context.strategy
    note = "" if strategy == "none" else say.text(f"station:{strategy}")
    if view.trace.unfed(view.cursor.turn):
        return say.text("station_refused"), note
    if truncated is None:
        return say.text("station_all"), note
    return say.text("station_cut", before=truncated.before, after=truncated.after), note
