"""Stations Logits, Processors and Draw: how one step's logits became one token."""

from typing import Any

import gradio as gr

from components.copy import words
from components.heading import titled
from components.panel import Controls, View
from components.sampling.bars import bars_figure, bars_height
from components.sampling.candidates import token_label
from components.sampling.draw import HEIGHT as DRAW_HEIGHT
from components.sampling.draw import draw_figure, interval_numbers
from components.sampling.lookup import lookup_table
from components.sampling.notes import notes
from components.sampling.slope import least_width, slope_figure, slope_height
from components.sampling.tables import candidates_table, penalty_table
from components.units import probability_text
from components.widgets import chart_host, rail, table, token_strip
from components.widgets.rail import Station
from engine.trace import Stepped

STATION = "sampling"
CONTROLS = Controls(looks_up="query")


def stations(view: View) -> list[Station]:
    say = words(STATION)
    step = view.nearest_step
    parts = {"logits": "", "processors": "", "draw": "sampling-draw"}
    lines = [("–", "")] * 3 if step is None else [_logits_line(step), _processors_line(step), _draw_line(step)]
    return [
        Station(name, say.text(f"station_{name}"), result, note, part=part)
        for (name, part), (result, note) in zip(parts.items(), lines, strict=True)
    ]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        rail.build("sampling-where", say.text("where_label"), variant="status"),
        chart_host.build("sampling-slope", say.text("slope")),
        titled(chart_host.build, "sampling-draw", say.text("draw")),
        token_strip.build("sampling-notes", say.text("notes"), height=640),
        titled(chart_host.build, "sampling-bars", say.text("bars")),
        titled(table.build, "sampling-penalty", say.text("penalty"), height=260),
        titled(table.build, "sampling-lookup", say.text("lookup"), height=360),
        titled(table.build, "sampling-candidates", say.text("candidates"), height=420),
    ]


def render(view: View) -> list[Any]:
    step, rendered = view.nearest_step, view.rendered
    assert step is not None and rendered is not None
    say = words(STATION)
    return [
        rail.value([Station("", "", _where(view, step))]),
        chart_host.value(
            slope_figure(step), label=say.text("slope"), height=slope_height(step), width=least_width(step)
        ),
        chart_host.value(
            draw_figure(step),
            label=say.text("draw"),
            height=DRAW_HEIGHT,
            numbers=interval_numbers(step),
            title=say.text("intervals"),
        ),
        token_strip.value(notes(view, step)),
        chart_host.value(bars_figure(step), label=say.text("bars"), height=bars_height(step)),
        penalty_table(rendered, view.steps, step),
        lookup_table(view, step),
        candidates_table(step),
    ]


def unavailable(view: View) -> str | None:
    return None if view.nearest_step else words(STATION).text("unavailable")


def _where(view: View, step: Stepped) -> str:
    key = "where" if view.step else "where_prompt"
    return words(STATION).text(key, step=step.step, last=len(view.steps) - 1, position=step.position)


def _logits_line(step: Stepped) -> tuple[str, str]:
    say, own = words(STATION), step.stages[0]
    return say.text("station_vocabulary", count=own.kept), say.text("station_entropy", entropy=own.entropy)


def _processors_line(step: Stepped) -> tuple[str, str]:
    """The kept counts wherever they change: "49,152→20→8"."""
    counts = [step.stages[0].kept]
    counts += [
        stage.kept for before, stage in zip(step.stages, step.stages[1:], strict=False) if stage.kept < before.kept
    ]
    return "→".join(f"{count:,}" for count in counts), words(STATION).text(
        "station_entropy", entropy=step.stages[-1].entropy
    )


def _draw_line(step: Stepped) -> tuple[str, str]:
    say = words(STATION)
    token = f'"{token_label(step.token_bytes)}"'
    if step.forced:
        return token, say.text("station_forced")
    return token, say.text("station_u", u=probability_text(step.draw.u)) if step.draw else say.text("station_greedy")
