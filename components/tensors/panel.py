"""Station Tensors: what one forward is fed and gives back, prefill beside decode, and who may see whom."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np
import numpy.typing as npt

from components.copy import sentences, words
from components.heading import titled
from components.kv_cache.why_many import why_many
from components.panel import Controls, View
from components.tensors.causal_mask import mask_values
from components.tensors.padding import padding_values
from components.widgets import heatmap, table, token_strip
from components.widgets.rail import Station
from components.widgets.table import Cell, Column
from engine.trace import Prefilled, Rendered, Shape, Stepped, Trace

STATION = "tensors"
CONTROLS = Controls(asks=("padding",))
NAMES = ("input_ids", "attention_mask", "position_ids", "logits", "keys", "values")
EDGE = 6


@dataclass(frozen=True, eq=False)
class Forward:
    """One forward: f tokens fed at positions [first, last], of a context whose ids and bytes are known up to last.

    `first` lies below 0 where a window's cache was built anew from what had left before this turn.
    """

    step: int | None  # None for the prefill
    first: int
    last: int
    ids: npt.NDArray[np.int64]  # [last + 1], the context
    data: tuple[bytes, ...]  # [last + 1]
    shapes: dict[str, Shape]
    told: int = 0  # the position that the model is told of the first token fed, less `first`
    gone: int = 0  # tokens of the context that have left a sliding window

    @property
    def fed(self) -> int:
        return self.last - self.first + 1


def stations(view: View) -> list[Station]:
    return [Station(STATION, words(STATION).title, *_line(view))]


def build() -> list[gr.HTML]:
    return [
        titled(table.build, "tensors-inputs", words(STATION).text("inputs")),
        titled(table.build, "tensors-versus", words(STATION).text("versus")),
        titled(table.build, "tensors-count", words(STATION).text("count")),
        titled(token_strip.build, "tensors-mask-note", words(STATION).text("mask")),
        heatmap.build("tensors-mask", words(STATION).text("mask")),
        titled(token_strip.build, "tensors-padding-note", words(STATION).text("padding")),
        table.build("tensors-padding-ways", words(STATION).text("padding_ways")),
        table.build("tensors-padding", words(STATION).text("padding_table")),
    ]


def render(view: View) -> list[Any]:
    forward, trace, rendered = select(view), view.trace, view.rendered
    assert forward is not None and trace is not None and rendered is not None
    prefilled = trace.prefilled(view.cursor.turn)
    assert prefilled is not None
    position = forward.last if view.cursor.position is None else min(view.cursor.position, forward.last)
    return [
        inputs_value(forward, trace, position, turn=view.cursor.turn),
        versus_value(prefilled, _decode_step(view), trace),
        count_value(rendered, view.nearest_step, gone=forward.gone),
        *mask_values(
            max(0, forward.first),
            forward.data,
            forward.shapes["attention_mask"][-1],
            position,
            gone=forward.gone,
            window=view.facts.sliding_window if "sliding" in view.facts.layer_kinds else None,
        ),
        *padding_values(view.results.get("padding"), view.facts),
    ]


def unavailable(view: View) -> str | None:
    return words(STATION).text("unavailable") if view.rendered is None or select(view) is None else None


def select(view: View) -> Forward | None:
    """The forward that gave the selected step its scores; the prefill for a prompt position and for step 0."""
    rendered, trace = view.rendered, view.trace
    prefilled = trace.prefilled(view.cursor.turn) if trace else None
    if rendered is None or prefilled is None:
        return None
    step = view.step
    told = trace.offset(view.cursor.turn) if trace else 0
    if step is None or step.step == 0:
        ids, data = _context(rendered, view.steps[:0])
        return Forward(None, prefilled.first, prefilled.last, ids, data, prefilled.shapes, told)
    ids, data = _context(rendered, view.steps[: step.step])
    fed = step.shapes["input_ids"][-1]
    gone = len(ids) - step.kv_tokens if trace and trace.experiment.context.strategy == "sliding_window" else 0
    if trace and trace.experiment.context.positions == "restart":
        told = -gone  # what stays is counted from 0 again
    return Forward(step.step, len(ids) - fed, len(ids) - 1, ids, data, step.shapes, told, gone)


def inputs_value(forward: Forward, trace: Trace, position: int, *, turn: int) -> dict[str, Any]:
    """Shape and values of each tensor, the middle of long ones left out around `position`."""
    say = words(STATION)
    columns = [
        Column(say.text("col_tensor"), mono=True),
        Column(say.text("col_shape"), mono=True),
        Column(say.text("col_values"), mono=True),
        Column(say.text("col_meaning")),
    ]
    at, unknown = position - forward.first, max(0, -forward.first)
    ids = elided([str(i) for i in forward.ids[max(0, forward.first) :]], at - unknown)
    values = {
        "input_ids": f"[{say.text('gap', count=unknown)} {ids[1:]}" if unknown else ids,
        "attention_mask": _mask_values(forward),
        "position_ids": elided([str(p + forward.told) for p in range(forward.first, forward.last + 1)], at),
    }
    rows: list[list[Cell | str]] = [
        [name, shape_text(forward.shapes[name]), values.get(name, ""), say.text(name)]
        for name in NAMES
        if name in forward.shapes
    ]
    return table.value(columns, rows, caption=_said(forward, trace, turn))


def versus_value(prefilled: Prefilled, step: Stepped | None, trace: Trace) -> dict[str, Any]:
    """The shapes of the turn's prefill and of one decode step side by side."""
    say = words(STATION)
    columns = [
        Column(say.text("col_tensor"), mono=True),
        Column(say.text("col_prefill"), mono=True),
        Column(say.text("col_decode", step=step.step) if step else say.text("col_no_decode"), mono=True),
    ]
    rows: list[list[Cell | str]] = []
    for name in NAMES:
        if name not in prefilled.shapes:
            continue
        before = shape_text(prefilled.shapes[name])
        after = say.text("not_yet")
        if step is not None:
            after = shape_text(step.shapes[name]) if name in step.shapes else say.text("no_tensor")
        rows.append([name, before, Cell(after, tone="accent" if step and after != before else "dim")])
    return table.value(columns, rows, caption=_versus_said(trace, step))


def count_value(rendered: Rendered, step: Stepped | None, *, gone: int = 0) -> dict[str, Any]:
    """F = prompt + sampled − 1, beside the positions that the cache really holds; `gone` have left a window."""
    say = words(STATION)
    columns = [Column(say.text("col_what")), Column(say.text("col_number"), align="right")]
    prompt, sampled = len(rendered.token_ids), step.step + 1 if step else 0
    rows: list[list[Cell | str]] = [[say.text("prompt_tokens"), str(prompt)]]
    if step is None:
        return table.value(columns, rows)
    fed = prompt + sampled - 1
    agree = fed - gone == step.kv_tokens
    rows += [
        [say.text("sampled_tokens"), f"+ {sampled}"],
        [say.text("not_fed"), "− 1"],
        [say.text("fed_tokens"), f"= {fed}"],
        [say.text("cache_tokens"), Cell(str(step.kv_tokens), tone="ok" if agree else "warn")],
    ]
    said = say.text("count_said", prompt=prompt, sampled=sampled, fed=fed)
    left = "" if gone == 0 else " " + say.text("count_gone", gone=gone, held=step.kv_tokens)
    return table.value(columns, rows, caption=said + left)


def _versus_said(trace: Trace, step: Stepped | None) -> str:
    """Why a decode step is fed one token, or why this one was fed more; and what grows all the same."""
    say, facts = words(STATION), trace.facts
    if step is not None and step.shapes["input_ids"][-1] > 1:
        return why_many(trace, step)
    if trace.experiment.context.strategy == "sliding_window":
        growth = say.text("versus_window")
    elif "sliding" in facts.layer_kinds and facts.sliding_window is not None:
        growth = say.text("versus_slide", held=facts.sliding_window - 1)
    else:
        growth = say.text("versus_grow")
    return sentences(say.text("versus_said"), growth)


def shape_text(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))})"


def elided(values: Sequence[str], at: int) -> str:
    """First, last and the values around index `at`; what is left out is counted."""
    keep = sorted(
        i
        for i in {*range(EDGE), *range(len(values) - EDGE, len(values)), *range(at - 2, at + 3)}
        if 0 <= i < len(values)
    )
    parts: list[str] = []
    last = -1
    for index in keep:
        missing = index - last - 1
        if missing == 1:
            parts.append(values[index - 1])
        elif missing:
            parts.append(words(STATION).text("gap", count=missing))
        parts.append(values[index])
        last = index
    return "[" + " ".join(parts) + "]"


def _context(rendered: Rendered, steps: Sequence[Stepped]) -> tuple[npt.NDArray[np.int64], tuple[bytes, ...]]:
    ids = np.concatenate([rendered.token_ids, np.array([step.token_id for step in steps], np.int64)]).astype(np.int64)
    return ids, (*rendered.token_bytes, *(step.token_bytes for step in steps))


def _decode_step(view: View) -> Stepped | None:
    """The selected step where it has a forward of its own, else the first that has."""
    if view.step is not None and view.step.step > 0:
        return view.step
    return view.steps[1] if len(view.steps) > 1 else None


def _mask_values(forward: Forward) -> str:
    length = forward.shapes["attention_mask"][-1]
    key = "all_ones" if length > forward.last - forward.gone else "mask_short"
    return words(STATION).text(key, count=length, total=forward.last + 1)


def _said(forward: Forward, trace: Trace, turn: int) -> str:
    say = words(STATION)
    if forward.step is None:
        key = "said_prefill_reused" if forward.first else "said_prefill"
        numbers = {"fed": forward.fed, "first": forward.first, "last": forward.last, "reused": forward.first - 1}
        return say.text(key, turn=turn + 1, **numbers)
    if forward.fed > 1:
        step = trace.steps(turn)[forward.step]
        return sentences(say.text("said_many", step=forward.step, fed=forward.fed), why_many(trace, step))
    numbers = {"position": forward.last, "next": forward.last + 1}
    return say.text("said_decode", step=forward.step, before=forward.step - 1, **numbers)


def _line(view: View) -> tuple[str, str]:
    """The rail's result and note."""
    say = words(STATION)
    if view.rendered is None or (forward := select(view)) is None:
        return "–", ""
    if forward.fed == 1:
        return shape_text(forward.shapes["input_ids"]), say.text("station", position=forward.last)
    note = say.text("station_range", first=max(0, forward.first), last=forward.last)
    return shape_text(forward.shapes["input_ids"]), note
