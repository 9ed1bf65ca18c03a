"""Stations Stop? and Text: whether the turn ends here and why, and how tokens become shown text."""

from typing import Any

import gradio as gr

from components.copy import words
from components.ends import end_text
from components.heading import titled
from components.panel import Controls, View
from components.stopping.eos import HEIGHT, eos_figure, eos_numbers, shut_out_table
from components.stopping.reasons import reasons_table, stopped_at
from components.stopping.text import answer_strip, buffer_table
from components.visible import visible
from components.widgets import chart_host, table, token_strip
from components.widgets.rail import Station

STATION = "stopping"
CONTROLS = Controls()
TAIL = 12  # characters of the text so far on the rail


def stations(view: View) -> list[Station]:
    say = words(STATION)
    return [
        Station("stop", say.text("station_stop"), *_stop_line(view)),
        Station("text", say.text("station_text"), *_text_line(view), part="stopping-answer"),
    ]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        titled(table.build, "stopping-reasons", say.text("reasons")),
        titled(chart_host.build, "stopping-eos", say.text("eos")),
        titled(table.build, "stopping-shut-out", say.text("shut_out_title")),
        titled(token_strip.build, "stopping-answer", say.text("answer")),
        titled(table.build, "stopping-bytes", say.text("buffer"), height=420),
    ]


def render(view: View) -> list[Any]:
    say = words(STATION)
    step = view.nearest_step
    assert step is not None and view.rendered is not None
    return [
        reasons_table(view),
        chart_host.value(
            eos_figure(view.steps, step.step),
            label=say.text("eos"),
            height=HEIGHT,
            numbers=eos_numbers(view.steps, step.step),
        ),
        shut_out_table(view.steps, view.rendered.token_ids.tolist()),
        answer_strip(view),
        buffer_table(view),
    ]


def unavailable(view: View) -> str | None:
    return None if view.nearest_step else words(STATION).text("unavailable")


def _stop_line(view: View) -> tuple[str, str]:
    say = words(STATION)
    step, stopped = view.nearest_step, stopped_at(view)
    ended = say.text("short_yes", reason=end_text(stopped.reason)) if stopped else ""
    result = ended or (say.text("short_no") if step else "–")
    eos = step.eos if step else None
    return result, say.text("station_rank", rank=eos.rank) if eos else ""


def _text_line(view: View) -> tuple[str, str]:
    say = words(STATION)
    step = view.nearest_step
    if step is None:
        return "–", ""
    stopped = stopped_at(view)
    released = stopped.text if stopped else ""
    text = "".join(one.text for one in view.steps if one.step <= step.step) + released
    tail = visible(text[-TAIL:]).replace("␣", " ")
    note = say.text("station_released" if released else "station_held", held=step.held_bytes)
    return f"…{tail}" if len(text) > TAIL else tail or "–", note
