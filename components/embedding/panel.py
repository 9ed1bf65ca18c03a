"""Station Embedding: the vector that a token id becomes, and how the model knows where it stands."""

from typing import Any

import gradio as gr

from components.copy import words
from components.embedding.angles import angles_map, angles_note, angles_numbers, is_turning, wavelengths_figure
from components.embedding.learned import learned_figure, learned_map, learned_note
from components.embedding.norms import norms_figure, norms_numbers
from components.embedding.phase import phase_note, phase_value
from components.embedding.row import neighbours_value, row_note
from components.embedding.sums import asked, sums_note, sums_value
from components.heading import titled
from components.inside import ask, newest, unavailable, where
from components.panel import Controls, View
from components.widgets import chart_host, heatmap, rail, table, token_strip
from components.widgets.rail import Station
from components.widgets.token_strip import Group
from engine.answers.embedding import Embedding

__all__ = ["CONTROLS", "STATION", "build", "render", "stations", "unavailable"]

STATION = "embedding"
CONTROLS = Controls(looks_up="formula")
HEIGHT = 220


def stations(view: View) -> list[Station]:
    say, facts, found = words(STATION), view.facts, newest(view, "embedding")
    result = say.text("station_size", rows=facts.vocab_rows, hidden=facts.hidden_size)
    if found is not None:
        result = say.text("station_norm", norm=found.norm)
    tied = facts.tied_embeddings if found is None else found.tied
    return [Station(STATION, say.title, result, say.text("station_tied" if tied else "station_untied"))]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        rail.build("embedding-where", say.text("where_label"), variant="status"),
        titled(token_strip.build, "embedding-row", say.text("row")),
        titled(table.build, "embedding-neighbours", say.text("neighbours")),
        titled(chart_host.build, "embedding-norms", say.text("norms")),
        titled(token_strip.build, "embedding-sums-note", say.text("sums")),
        table.build("embedding-sums", say.text("sums")),
        titled(token_strip.build, "embedding-rotary-note", say.text("rotary")),
        chart_host.build("embedding-wavelengths", say.text("rotary")),
        heatmap.build("embedding-angles", say.text("angles")),
        titled(token_strip.build, "embedding-phase-note", say.text("phase")),
        table.build("embedding-phase", say.text("phase")),
        titled(token_strip.build, "embedding-learned-note", say.text("learned")),
        chart_host.build("embedding-learned", say.text("learned")),
        heatmap.build("embedding-learned-map", say.text("learned_map")),
    ]


def render(view: View) -> list[Any]:
    found = ask(view, "embedding")
    if isinstance(found, str):
        return [rail.value([Station("", "", found, "", "warn")]), *[None] * 13]
    return [
        rail.value([Station("", "", where(view))]),
        *_table_values(found, view),
        *_rotary_values(view),
        *_phase_values(view),
        *_learned_values(view),
    ]


def _table_values(found: Embedding, view: View) -> list[Any]:
    say, total = words(STATION), asked(view)
    norms = chart_host.value(
        norms_figure(found, view, HEIGHT), label=say.text("norms"), height=HEIGHT,
        numbers=norms_numbers(found, view), title=say.text("numbers"),
    )  # fmt: skip
    return [
        row_note(found),
        neighbours_value(found),
        norms,
        sums_note(total),
        None if isinstance(total, str) else sums_value(total),
    ]


def _rotary_values(view: View) -> list[Any]:
    say, found, layer = words(STATION), ask(view, "rotary"), view.cursor.layer
    if isinstance(found, str):
        return [_said(found), None, None]
    chart = chart_host.value(
        wavelengths_figure(found, HEIGHT), label=say.text("rotary"), height=HEIGHT,
        numbers=angles_numbers(found, layer), title=say.text("numbers"),
    )  # fmt: skip
    note = angles_note(found, layer, view.facts.layers)
    return [note, chart, angles_map(found, view) if is_turning(found, layer) else None]


def _phase_values(view: View) -> list[Any]:
    found = ask(view, "relative_phase", layer=view.cursor.layer, head=view.cursor.head)
    return [_said(found), None] if isinstance(found, str) else [phase_note(found, view), phase_value(found)]


def _learned_values(view: View) -> list[Any]:
    say, found = words(STATION), ask(view, "positions")
    if isinstance(found, str):
        return [_said(found), None, None]
    chart = chart_host.value(learned_figure(found, HEIGHT), label=say.text("learned"), height=HEIGHT)
    return [learned_note(found), chart, learned_map(found, view)]


def _said(reason: str) -> dict[str, Any]:
    return token_strip.value([Group([], note=reason, as_text=True)])
