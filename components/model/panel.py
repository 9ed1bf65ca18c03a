"""Station Model: the sizes that were fixed before training, and where the model's numbers lie."""

from typing import Any

import gradio as gr

from components.copy import words
from components.heading import titled
from components.model.memory import memory_value
from components.model.parameters import parameters_value
from components.model.parts import areas_figure, parts_value, where_note
from components.panel import Controls, View
from components.widgets import chart_host, table, token_strip
from components.widgets.rail import Station
from engine.answers.memory import Memory
from engine.answers.model import Model
from engine.refusals import Refused

STATION = "model"
CONTROLS = Controls()
HEIGHT = 260


def stations(view: View) -> list[Station]:
    say, facts = words(STATION), view.facts
    note = say.text("station_note", layers=facts.layers)
    return [Station(STATION, say.title, count_text(facts.parameters), note)]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        titled(table.build, "model-parameters", say.text("parameters"), height=640),
        titled(table.build, "model-memory", say.text("memory"), height=240),
        titled(token_strip.build, "model-where-note", say.text("where")),
        chart_host.build("model-where", say.text("where")),
        titled(table.build, "model-parts", say.text("parts"), height=480),
    ]


def render(view: View) -> list[Any]:
    assert view.probe is not None
    found: Model = view.probe(STATION)
    memory = _memory(view)
    tied = view.facts.tied_embeddings
    label = words(STATION).text("where_label", total=found.counted)
    return [
        parameters_value(found, view.facts, memory),
        memory_value(memory) if memory else None,
        where_note(found, tied),
        chart_host.value(areas_figure(found, HEIGHT), label=label, height=HEIGHT),
        parts_value(found, tied),
    ]


def _memory(view: View) -> Memory | None:
    """None where a record that does not tell it is shown with no model: what is free is no part of a run."""
    assert view.probe is not None
    try:
        found: Memory = view.probe("memory")
    except Refused:
        if view.recorded is None:
            raise
        return None
    return found


def unavailable(view: View) -> str | None:
    if view.trace is None:
        return words("page").text("inside_not_yet")
    return words("page").text("inside_no_model") if view.probe is None else None


def count_text(count: int) -> str:
    """134,515,008 → "134.5M"."""
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)
