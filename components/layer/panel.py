"""Station One layer: a layer taken apart, every operation worked out by hand beside what the model computed."""

from typing import Any

import gradio as gr

from components.copy import words
from components.heading import titled
from components.inside import ask, newest, unavailable, where
from components.layer.figures import difference_text
from components.layer.operations import first_value, operations_value
from components.layer.verdict import holds, strip_value, verdict_value
from components.panel import Controls, View
from components.widgets import heatmap, rail, table, token_strip
from components.widgets.rail import Station
from components.widgets.token_strip import Group

__all__ = ["CONTROLS", "STATION", "build", "render", "stations", "unavailable"]

STATION = "layer"
CONTROLS = Controls()


def stations(view: View) -> list[Station]:
    say, found = words(STATION), newest(view, "layer")
    result = say.text("station", layer=view.cursor.layer)
    if found is None or found.layer != view.cursor.layer:
        return [Station(STATION, say.title, result, say.text("station_note"))]
    note = say.text("station_difference", difference=difference_text(found.largest))
    return [Station(STATION, say.title, result, note, "" if holds(found) else "warn")]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        rail.build("layer-where", say.text("where_label"), variant="status"),
        token_strip.build("layer-verdict", say.text("verdict_label")),
        titled(token_strip.build, "layer-strip-note", say.text("strip")),
        heatmap.build("layer-strip", say.text("strip")),
        titled(table.build, "layer-operations", say.text("operations"), height=480),
        titled(table.build, "layer-first", say.text("first")),
    ]


def render(view: View) -> list[Any]:
    found = ask(view, "layer", layer=view.cursor.layer)
    if isinstance(found, str):
        return [rail.value([Station("", "", found, "", "warn")]), *[None] * 5]
    return [
        rail.value([Station("", "", where(view))]),
        verdict_value(found),
        token_strip.value([Group([], note=words(STATION).text("strip_said"), as_text=True)]),
        strip_value(found),
        operations_value(found, view.cursor.operation),
        first_value(found, view.cursor.operation),
    ]
