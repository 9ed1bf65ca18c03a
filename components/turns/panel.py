"""Station Turns: what each turn took from the cache, what it computed, what it dropped, and why."""

from typing import Any

import gradio as gr

from components.copy import words
from components.heading import titled
from components.inside import of_turn
from components.panel import Controls, View
from components.turns import cause, closing, ledger, matched
from components.turns.checks import cold_table, prefix_note, time_table
from components.turns.tables import (
    SHOWN,
    closings_table,
    differences_table,
    turns_figure,
    turns_height,
    turns_table,
)
from components.widgets import chart_host, table, token_strip
from components.widgets.rail import Station

STATION = "turns"
CONTROLS = Controls(asks=("cold_turn", "time_in_prompt"))


def stations(view: View) -> list[Station]:
    say, rows = words(STATION), ledger.select(view.trace) if view.trace else []
    if not rows:
        return [Station(STATION, say.title, "–")]
    newest = rows[-1]
    result = say.text("station", turns=len(rows))
    numbers = {"reused": newest.reused, "computed": newest.computed}
    note = say.text("station_refused") if newest.refused else say.text("station_note", **numbers)
    return [Station(STATION, say.title, result, note)]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        titled(table.build, "turns-table", say.text("table"), height=420),
        chart_host.build("turns-chart", say.text("chart")),
        titled(table.build, "turns-differences", say.text("differences"), height=420),
        titled(table.build, "turns-closings", say.text("closings"), height=420),
        titled(table.build, "turns-cold", say.text("cold")),
        titled(token_strip.build, "turns-prefix", say.text("prefix")),
        titled(table.build, "turns-time", say.text("time")),
    ]


def render(view: View) -> list[Any]:
    say, trace = words(STATION), view.trace
    assert trace is not None
    rows = ledger.select(trace)
    first = max(0, trace.turns - SHOWN - 1)
    turns = range(first, trace.turns)
    rendered = [one for turn in turns if (one := trace.rendered(turn)) is not None]
    found = [cause.select(trace, one.turn) or matched.select(trace, one.turn) for one in rendered]
    ends = [end for turn in turns if (end := closing.select(trace, turn)) is not None]
    return [
        turns_table(rows),
        chart_host.value(turns_figure(rows), label=say.text("chart"), height=turns_height(rows)),
        differences_table(rendered, found, view.cursor.turn),
        closings_table(ends),
        cold_table(of_turn(view, "cold_turn")),
        prefix_note(trace.rendered(0)),
        time_table(view.results.get("time_in_prompt")),
    ]


def unavailable(view: View) -> str | None:
    return None if view.rendered else words(STATION).text("unavailable")
