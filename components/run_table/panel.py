"""Station Run: the whole run as one table, its times, the check against generate, and the classic mistakes."""

from typing import Any

import gradio as gr

from components.copy import words
from components.ends import end_text
from components.heading import titled
from components.inside import of_turn
from components.panel import Controls, View
from components.run_table.mistakes import mistakes_value
from components.run_table.parity import parity_value
from components.run_table.stages import StageRow, step_rows, turn_rows
from components.status import time_to_first_token, tokens_per_second
from components.units import seconds_text
from components.widgets import table
from components.widgets.rail import Station
from components.widgets.table import Cell, Column
from engine.trace import Prefilled

STATION = "run_table"
CONTROLS = Controls(asks=("parity",))


def stations(view: View) -> list[Station]:
    return [Station(STATION, words(STATION).title, *_line(view))]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        titled(table.build, "run-stages", say.text("stages"), height=520),
        titled(table.build, "run-times", say.text("times")),
        titled(table.build, "run-parity", say.text("parity")),
        titled(table.build, "run-mistakes", say.text("mistakes")),
    ]


def render(view: View) -> list[Any]:
    assert view.trace is not None
    prefilled = view.trace.prefilled(view.cursor.turn)
    mistake = view.trace.experiment.mistake
    return [
        stages_value(view, select(view)),
        times_value(view, prefilled),
        parity_value(of_turn(view, "parity"), view.steps),
        mistakes_value(mistake, view.nearest_step, view.steps, view.facts.eos_ids),
    ]


def unavailable(view: View) -> str | None:
    return None if view.rendered else words(STATION).text("unavailable")


def select(view: View) -> list[StageRow]:
    """The rows of the selected turn and step."""
    assert view.trace is not None and view.rendered is not None
    turn, step = view.cursor.turn, view.nearest_step
    rows = list(turn_rows(view.trace, view.rendered, view.trace.prefilled(turn)))
    if step is not None:
        before = view.steps[step.step - 1] if step.step else None
        last = step is view.steps[-1]
        rows += step_rows(step, before, view.trace.stopped(turn) if last else None)
    return rows


def stages_value(view: View, rows: list[StageRow]) -> dict[str, Any]:
    """The stages as a table; those that happen once a turn are set back."""
    say = words(STATION)
    columns = [
        Column(say.text("col_stage")),
        Column(say.text("col_in"), mono=True),
        Column(say.text("col_out"), mono=True),
        Column(say.text("col_time"), align="right"),
        Column(say.text("col_by")),
    ]
    cells: list[list[Cell | str]] = [
        [Cell(row.stage, tone="dim" if row.once else ""), row.given, row.gave, row.time, Cell(row.by, tone="dim")]
        for row in rows
    ]
    step, turn = view.nearest_step, view.cursor.turn + 1
    if step is None:
        return table.value(columns, cells, caption=say.text("caption_prompt", turn=turn))
    together = seconds_text(step.overhead_seconds)
    return table.value(columns, cells, caption=say.text("caption_step", turn=turn, step=step.step, seconds=together))


def times_value(view: View, prefilled: Prefilled | None) -> dict[str, Any]:
    """TTFT, TPOT and the two speeds, each with how it is measured."""
    say = words(STATION)
    columns = [
        Column(say.text("col_measure")),
        Column(say.text("col_value"), align="right"),
        Column(say.text("col_how")),
    ]
    first, rate, none = time_to_first_token(view), tokens_per_second(view), say.text("no_measure")
    decoded = sum(step.seconds > 0 for step in view.steps)
    rows: list[list[Cell | str]] = [
        [say.text("ttft"), seconds_text(first) if first is not None else none, say.text("ttft_how")],
        [say.text("tpot"), seconds_text(1 / rate) if rate else none, say.text("tpot_how", count=decoded)],
        [say.text("rate"), f"{rate:.1f}" if rate else none, say.text("rate_how")],
    ]
    if prefilled is not None and prefilled.seconds > 0:
        fed = prefilled.last - prefilled.first + 1
        how = say.text("prefill_rate_how", count=fed, seconds=seconds_text(prefilled.seconds))
        rows.append([say.text("prefill_rate"), f"{fed / prefilled.seconds:.1f}", how])
    return table.value(columns, rows)


def _line(view: View) -> tuple[str, str]:
    """The rail's result and note."""
    say = words(STATION)
    if view.trace is None or not view.steps:
        return "–", ""
    stopped = view.trace.stopped(view.cursor.turn)
    ended = end_text(stopped.reason) if stopped else say.text("station_running")
    return say.text("station", tokens=len(view.steps)), ended
