"""Station Compare: the branches of this session, two runs side by side, and one prompt under several settings."""

from typing import Any

import gradio as gr

from components.compare.changes import changes
from components.compare.grid import entropy_map, grid_table
from components.compare.parting import parting
from components.compare.sides import sides_value
from components.copy import words
from components.ends import end_text
from components.heading import titled
from components.panel import Controls, View
from components.visible import running_text
from components.widgets import heatmap, table
from components.widgets.rail import Station
from components.widgets.table import Cell, Column
from engine.trace import Trace

STATION = "compare"
CONTROLS = Controls(asks=("take_branch", "chances"), idle=lambda view: not view.branches, grid=True)
SHOWN = 120  # characters of an answer in the list


def stations(view: View) -> list[Station]:
    say, branch = words(STATION), chosen(view)
    if branch is None or view.trace is None:
        return [Station(STATION, say.title, "–", "")]
    count = len(view.branches)
    result = say.text("station", count=count)
    found = parting(view.trace, branch.trace)
    note = say.text("station_same") if found is None else say.text("station_note", step=found.step)
    return [Station(STATION, say.title, result, note)]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        titled(table.build, "compare-branches", say.text("branches")),
        titled(table.build, "compare-sides", say.text("sides")),
        titled(table.build, "compare-grid", say.text("grid"), height=420),
        titled(heatmap.build, "compare-map", say.text("map")),
    ]


def render(view: View) -> list[Any]:
    branch = chosen(view)
    return [
        branches_value(view),
        sides_value(view, branch),
        grid_table(view.grid),
        entropy_map(view.grid),
    ]


def unavailable(view: View) -> str | None:
    return words(STATION).text("unavailable") if view.rendered is None else None


def chosen(view: View) -> Any:
    """The branch that is compared with the run: the one that was chosen, else the newest; None where there is none."""
    found = [branch for branch in view.branches if branch.id == view.cursor.branch]
    return (found or list(view.branches) or [None])[-1]


def branches_value(view: View) -> dict[str, Any]:
    """The run, and under it what was left for another way, newest first."""
    assert view.trace is not None
    say, branch = words(STATION), chosen(view)
    if branch is None:
        return table.value([Column(say.text("col_run"))], [[say.text("no_branches")]])
    columns = [
        Column(say.text("col_run")),
        Column(say.text("col_change")),
        Column(say.text("col_tokens"), align="right"),
        Column(say.text("col_end")),
        Column(say.text("col_answer")),
    ]
    newest = list(view.branches)[::-1]
    rows = [[Cell(say.text("this_run"), "accent"), "", *_told(view.trace)]]
    rows += [[say.text("branch", id=one.id), changes(one.trace, view.trace), *_told(one.trace)] for one in newest]
    keys: list[Any] = [{}, *({"branch": one.id} for one in newest)]
    return table.value(columns, rows, key=keys, selected=1 + newest.index(branch), caption=say.text("branches_caption"))


def _told(trace: Trace) -> list[Cell | str]:
    turn = max(0, trace.turns - 1)
    stopped, answer = trace.stopped(turn), trace.answer(turn)
    short = running_text(answer[:SHOWN]) + ("…" if len(answer) > SHOWN else "")
    ended = end_text(stopped.reason) if stopped else words(STATION).text("going_on")
    return [str(len(trace.steps(turn))), ended, short]
