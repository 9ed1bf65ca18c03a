"""Station Feed-forward: the neurons that fire at the position in sight, and the tokens that they speak for."""

from typing import Any

import gradio as gr

from components.copy import words
from components.feed_forward.neurons import neurons_value, notes_value
from components.feed_forward.sparsity import curve_figure, layers_figure, layers_numbers
from components.heading import titled
from components.inside import ask, newest, unavailable, where
from components.panel import Controls, View
from components.widgets import chart_host, rail, table, token_strip
from components.widgets.rail import Station
from engine.answers.feed_forward import FeedForward

__all__ = ["CONTROLS", "STATION", "build", "render", "stations", "unavailable"]

STATION = "feed_forward"
CONTROLS = Controls()
CURVE_HEIGHT = 220
LAYERS_HEIGHT = 200


def stations(view: View) -> list[Station]:
    say = words(STATION)
    found: FeedForward | None = newest(view, STATION)
    if found is None:
        waiting = say.text("station_waiting", neurons=view.facts.ffn_size)
        return [Station(STATION, say.title, waiting, say.text("station_waiting_note"))]
    own = found.sparsity
    result = say.text("station", half=own.half, neurons=own.neurons)
    return [Station(STATION, say.title, result, say.text("station_note", layer=found.layer))]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        rail.build("feed-forward-where", say.text("where_label"), variant="status"),
        titled(token_strip.build, "feed-forward-notes", say.text("fires"), height=400),
        titled(table.build, "feed-forward-neurons", say.text("neurons"), height=560),
        titled(chart_host.build, "feed-forward-layers", say.text("layers")),
        titled(chart_host.build, "feed-forward-curve", say.text("curve")),
    ]


def render(view: View) -> list[Any]:
    say = words(STATION)
    found = ask(view, STATION, layer=view.cursor.layer)
    if isinstance(found, str):
        return [rail.value([Station("", "", found, "", "warn")]), *[None] * 4]
    return [
        rail.value([Station("", "", where(view))]),
        notes_value(found),
        neurons_value(found),
        chart_host.value(
            layers_figure(found, LAYERS_HEIGHT), label=say.text("layers"), height=LAYERS_HEIGHT,
            numbers=layers_numbers(found), title=say.text("numbers"),
        ),
        chart_host.value(curve_figure(found, CURVE_HEIGHT), label=say.text("curve"), height=CURVE_HEIGHT),
    ]  # fmt: skip
