"""Station Lens: what the model would say after each layer, and how the chosen token climbed to the top."""

from typing import Any

import gradio as gr

from components.copy import words
from components.heading import titled
from components.inside import ask, newest, of_turn, unavailable, where
from components.lens.curves import PROBABILITY_HEIGHT, RANK_HEIGHT, probability_figure, rank_figure
from components.lens.layer_map import map_note, map_value
from components.lens.rows import climb, followed_value, rows_value
from components.panel import Controls, View
from components.units import probability_text
from components.widgets import chart_host, heatmap, rail, table, token_strip
from components.widgets.rail import Station
from engine.answers.lens import Lens

__all__ = ["CONTROLS", "STATION", "build", "render", "stations", "unavailable"]

STATION = "lens"
CONTROLS = Controls(asks=("lens_map",), looks_up="query")
LEAST_WIDTH = 340


def stations(view: View) -> list[Station]:
    return [Station(STATION, words(STATION).title, *_line(view))]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        rail.build("lens-where", say.text("where_label"), variant="status"),
        titled(chart_host.build, "lens-ranks", say.text("ranks")),
        titled(chart_host.build, "lens-probabilities", say.text("probabilities")),
        titled(table.build, "lens-rows", say.text("rows"), height=420),
        titled(token_strip.build, "lens-map-note", say.text("map")),
        heatmap.build("lens-map", say.text("map")),
    ]


def render(view: View) -> list[Any]:
    say = words(STATION)
    lens = ask(view, "lens", query=view.cursor.query)
    layer_map = of_turn(view, "lens_map")
    mapped = [map_note(layer_map), map_value(layer_map, view) if layer_map else None]
    if isinstance(lens, str):
        return [rail.value([Station("", "", lens, "", "warn")]), None, None, None, *mapped]
    return [
        rail.value([Station("", "", where(view))]),
        chart_host.value(
            rank_figure(lens, view.facts.vocab_rows), label=say.text("ranks"), height=RANK_HEIGHT,
            numbers=followed_value(lens), title=say.text("numbers"), width=LEAST_WIDTH,
        ),
        chart_host.value(
            probability_figure(lens), label=say.text("probabilities"), height=PROBABILITY_HEIGHT, width=LEAST_WIDTH
        ),
        rows_value(lens, view.cursor.query, live=view.recorded is None),
        *mapped,
    ]  # fmt: skip


def _line(view: View) -> tuple[str, str]:
    """The rail's result and note: where the next token comes to lead, once the lens was looked through here."""
    say, lens = words(STATION), newest(view, "lens")
    if lens is None:
        return say.text("station_rows", count=view.facts.layers + 1), say.text("station_note")
    column = _target(lens)
    rank, probability = int(lens.ranks[-1, column]), float(lens.probabilities[-1, column])
    if rank == 1:
        return say.text("station_first", row=climb(lens, column)), say.text(
            "station_probability", p=probability_text(probability)
        )
    return say.text("station_rank", rank=rank), say.text("station_probability", p=probability_text(probability))


def _target(lens: Lens) -> int:
    """The column of the next token; of the last row's best guess where none was chosen yet."""
    wanted = int(lens.top_ids[-1]) if lens.next_id is None else lens.next_id
    return int(lens.token_ids.tolist().index(wanted))
