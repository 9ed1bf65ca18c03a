"""Station Layers: the residual stream of one position, what each layer adds to it, and which layer moved the token."""

from typing import Any

import gradio as gr

from components.copy import words
from components.heading import titled
from components.inside import ask, newest, of_turn, row_label, unavailable, where
from components.panel import Controls, View
from components.residual.positions import positions_figure, positions_map, positions_note, positions_numbers
from components.residual.shares import shares_figure, shares_note, shares_numbers
from components.residual.stream import stream_figure, stream_note, stream_numbers
from components.widgets import chart_host, heatmap, rail, token_strip
from components.widgets.rail import Station
from engine.answers.residual import Residual

__all__ = ["CONTROLS", "STATION", "build", "render", "stations", "unavailable"]

STATION = "residual"
CONTROLS = Controls(asks=("norms",))
HEIGHT = 260


def stations(view: View) -> list[Station]:
    say, facts, residual = words(STATION), view.facts, newest(view, "residual")
    note = say.text("station_note")
    if residual is not None:
        note = say.text("station_norms", first=residual.norms[0], last=residual.norms[-1])
    return [Station("layers", words(STATION).title, f"{facts.layers} × {facts.hidden_size}", note)]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        rail.build("residual-where", say.text("where_label"), variant="status"),
        titled(token_strip.build, "residual-shares-note", say.text("shares")),
        chart_host.build("residual-shares", say.text("shares")),
        titled(token_strip.build, "residual-stream-note", say.text("stream")),
        chart_host.build("residual-stream", say.text("stream")),
        titled(heatmap.build, "residual-cosines", say.text("cosines")),
        titled(token_strip.build, "residual-positions-note", say.text("positions")),
        chart_host.build("residual-positions", say.text("positions")),
        heatmap.build("residual-positions-map", say.text("positions_map")),
    ]


def render(view: View) -> list[Any]:
    say = words(STATION)
    residual, norms = ask(view, "residual"), of_turn(view, "norms")
    positions = [positions_note(norms), None, None]
    if norms is not None:
        chart = chart_host.value(
            positions_figure(norms, view, HEIGHT), label=say.text("positions"), height=HEIGHT,
            numbers=positions_numbers(norms), title=say.text("numbers"),
        )  # fmt: skip
        positions = [positions_note(norms), chart, positions_map(norms, view)]
    if isinstance(residual, str):
        return [rail.value([Station("", "", residual, "", "warn")]), *[None] * 5, *positions]
    return [
        rail.value([Station("", "", where(view))]),
        shares_note(residual),
        chart_host.value(
            shares_figure(residual, HEIGHT), label=say.text("shares"), height=HEIGHT,
            numbers=shares_numbers(residual), title=say.text("numbers"),
        ),
        stream_note(residual),
        chart_host.value(
            stream_figure(residual, HEIGHT), label=say.text("stream"), height=HEIGHT,
            numbers=stream_numbers(residual), title=say.text("numbers"),
        ),
        cosines_value(residual),
        *positions,
    ]  # fmt: skip


def cosines_value(residual: Residual) -> dict[str, Any]:
    """How alike the direction of the stream is between any two rows."""
    rows = len(residual.norms)
    labels = [row_label(row, rows - 1) for row in range(rows)]
    low = min(0.0, float(residual.cosines.min()))
    label = words(STATION).text("cosines_label", rows=rows)
    return heatmap.value(residual.cosines, x=labels, y=labels, label=label, low=low, high=1.0)
