"""The stop signal step by step: rank and logit of the best end-of-sequence token, and which settings shut it out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components.copy import sentences, words
from components.drawing import AXIS, Drawing, drawing
from components.sampling.candidates import stage_name
from components.units import probability_text
from components.visible import visible_bytes
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.trace import Stepped

HEIGHT = 270
#: Marker and colour of the steps at which a stage cut the token, in the order in which stages are met.
CUT_MARKS = (("x-thin", "var(--s6)"), ("cross-thin", "var(--s4)"), ("asterisk", "var(--s5)"), ("y-down", "var(--s1)"))


@dataclass(frozen=True)
class ShutOut:
    """One stage's cuts of the end-of-sequence token: at which steps, and the best rank it had there."""

    stage: str
    steps: tuple[int, ...]
    best_rank: int


def shut_out(steps: Sequence[Stepped]) -> list[ShutOut]:
    """The stages that made stopping impossible, the one that did so most often first."""
    found: dict[str, list[Stepped]] = {}
    for step in steps:
        if step.eos and step.eos.cut_by:
            found.setdefault(step.eos.cut_by, []).append(step)
    rows = [
        ShutOut(name, tuple(step.step for step in cut), min(step.eos.rank for step in cut if step.eos))
        for name, cut in found.items()
    ]
    return sorted(rows, key=lambda row: -len(row.steps))


def eos_figure(steps: Sequence[Stepped], selected: int) -> Drawing:
    """Rank on a reversed logarithmic axis above, logit below; a mark for each step, by the stage that cut the token."""
    say = words("stopping")
    scored = [step for step in steps if step.eos]
    worst = max((step.eos.rank for step in scored if step.eos), default=10)
    groups = [None, *(row.stage for row in shut_out(steps))]
    return drawing(
        HEIGHT,
        [
            _line([step.eos.rank for step in scored if step.eos], scored, "y"),
            _line([round(step.eos.logit, 3) for step in scored if step.eos], scored, "y2"),
            *(
                _marks([step for step in scored if step.eos and step.eos.cut_by == name], name, place)
                for place, name in enumerate(groups)
            ),
        ],
        margin={"l": 56, "r": 12, "t": 26, "b": 36},
        xaxis={"title": {"text": say.text("axis_step")}, "anchor": "y2", "dtick": _tick_every(len(steps))},
        yaxis={
            "type": "log",
            "range": [math.log10(worst) + 0.25, -0.25],
            "domain": [0.36, 1],
            "dtick": 1,
            "zeroline": False,
            "title": {"text": say.text("axis_rank")},
            "exponentformat": "none",
            "separatethousands": True,
        },
        yaxis2={
            **AXIS,
            "domain": [0, 0.26],
            "nticks": 3,
            "anchor": "x",
            "title": {**AXIS["title"], "text": say.text("axis_logit")},
        },
        showlegend=True,
        legend={"y": 1.0, "x": 1, "xanchor": "right"},
        shapes=[
            {
                "type": "line", "x0": selected, "x1": selected, "y0": 0, "y1": 1, "yref": "paper",
                "line": {"color": "var(--accent)", "width": 1},
            }
        ],
    )  # fmt: skip


def _line(values: Sequence[float], steps: Sequence[Stepped], axis: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [step.step for step in steps],
        "y": list(values),
        "yaxis": axis,
        "mode": "lines",
        "line": {"color": "var(--ink)" if axis == "y2" else "var(--faint)", "width": 1.4},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _marks(steps: Sequence[Stepped], cut_by: str | None, place: int) -> dict[str, Any]:
    say = words("stopping")
    symbol, color = ("circle", "var(--ink)") if cut_by is None else CUT_MARKS[(place - 1) % len(CUT_MARKS)]
    return {
        "type": "scatter",
        "x": [step.step for step in steps],
        "y": [step.eos.rank for step in steps if step.eos],
        "mode": "markers",
        "name": say.text("open") if cut_by is None else say.text("cut_by", stage=stage_name(cut_by)),
        "marker": {"symbol": symbol, "size": 7, "color": color, "line": {"color": color, "width": 1.6}},
        "customdata": [{"position": step.position} for step in steps],
        "hovertext": [_hover(step) for step in steps],
        "hoverinfo": "text",
        "showlegend": bool(steps),
    }


def _hover(step: Stepped) -> str:
    assert step.eos is not None
    text = words("stopping").text(
        "eos_hover",
        step=step.step,
        rank=step.eos.rank,
        logit=step.eos.logit,
        p=probability_text(step.eos.probability),
    )
    cut = step.eos.cut_by
    return f"{text}\n{words('stopping').text('cut_by', stage=stage_name(cut))}" if cut else text


def _tick_every(count: int) -> int:
    return next(size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**6) if count / size <= 16)


def eos_numbers(steps: Sequence[Stepped], selected: int) -> dict[str, Any]:
    """The chart as a table: one row a step."""
    say = words("stopping")
    columns = [
        Column(say.text("col_step"), align="right"),
        Column(say.text("col_chosen"), mono=True),
        Column(say.text("col_logit"), align="right"),
        Column(say.text("col_probability"), align="right"),
        Column(say.text("col_rank"), align="right"),
        Column(say.text("col_cut_by")),
    ]
    scored = [(step, step.eos) for step in steps if step.eos]
    rows: list[list[Cell | str]] = [
        [
            str(step.step),
            visible_bytes(step.token_bytes),
            f"{eos.logit:.2f}",
            probability_text(eos.probability),
            f"{eos.rank:,}",
            stage_name(eos.cut_by) if eos.cut_by else "",
        ]
        for step, eos in scored
    ]
    place = next((i for i, (step, _) in enumerate(scored) if step.step == selected), None)
    return table.value(columns, rows, selected=place, key=[{"position": step.position} for step, _ in scored])


def shut_out_table(steps: Sequence[Stepped], prompt_ids: Sequence[int]) -> dict[str, Any]:
    """Which settings made stopping impossible, at how many steps, and how well the signal stood there."""
    say = words("stopping")
    rows = shut_out(steps)
    if not any(step.eos for step in steps):
        return table.value([], [], caption=say.text("no_eos"))
    said = [_how_often(rows, steps), *_penalised(steps, prompt_ids)]
    if not rows:
        return table.value([], [], caption=sentences(*said))
    columns = [
        Column(say.text("col_setting")),
        Column(say.text("col_steps_cut"), align="right"),
        Column(say.text("col_at_steps"), mono=True),
        Column(say.text("col_best_rank"), align="right", help=say.text("help_best_rank")),
    ]
    cells = [[stage_name(row.stage), str(len(row.steps)), ranges(row.steps), f"{row.best_rank:,}"] for row in rows]
    return table.value(columns, cells, caption=sentences(*said))


def _how_often(rows: Sequence[ShutOut], steps: Sequence[Stepped]) -> str:
    say = words("stopping")
    if not rows:
        return say.text("never_shut_out", steps=len(steps))
    text = say.text("shut_out", cut=sum(len(row.steps) for row in rows), steps=len(steps))
    first = sum(1 for step in steps if step.eos and step.eos.cut_by and step.eos.rank == 1)
    return sentences(text, say.text("shut_out_first", first=first)) if first else text


def _penalised(steps: Sequence[Stepped], prompt_ids: Sequence[int]) -> list[str]:
    """The repetition penalty lowers EOS itself, or raises it, where the prompt's scaffold ends its messages with it."""
    found = [stage for step in steps for stage in step.stages if stage.name == "repetition_penalty"]
    eos_ids = {step.eos.token_id for step in steps if step.eos}
    held = sum(1 for token_id in prompt_ids if token_id in eos_ids)
    if not found or not held:
        return []
    key = "eos_raised" if found[0].parameters["repetition_penalty"] < 1 else "eos_penalised"
    return [words("stopping").text(key, count=held)]


def ranges(numbers: Sequence[int]) -> str:
    """Rising numbers in few words: 0, 1, 2, 5 → "0–2, 5"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs)
