"""Station KV cache: what is kept of every position, how much it takes, and what it saves."""

from typing import Any

import gradio as gr

from components.copy import sentences, words
from components.heading import titled
from components.inside import of_turn
from components.kv_cache.growth import HEIGHT, growth_figure, growth_numbers
from components.kv_cache.tables import formula_table, layers_table, models_table, uncached_table
from components.kv_cache.why_many import why_many
from components.panel import Controls, View
from components.units import bytes_text
from components.visible import visible_bytes
from components.widgets import chart_host, table, token_strip
from components.widgets.rail import Station
from components.widgets.token_strip import Group
from engine.trace import Stepped, Trace

STATION = "kv_cache"
CONTROLS = Controls(asks=("uncached",))


def stations(view: View) -> list[Station]:
    say = words(STATION)
    step = view.nearest_step
    result, note = "–", ""
    if step is not None:
        result = bytes_text(step.kv_bytes)
        note = say.text("station_each", size=bytes_text(view.facts.kv_bytes_per_token))
    return [Station(STATION, say.text("station"), result, note)]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        token_strip.build("kv-notes", say.text("notes")),
        titled(chart_host.build, "kv-growth", say.text("growth")),
        titled(table.build, "kv-formula", say.text("formula_title")),
        titled(table.build, "kv-layers", say.text("layers")),
        titled(table.build, "kv-uncached", say.text("uncached")),
        titled(table.build, "kv-models", say.text("models")),
    ]


def render(view: View) -> list[Any]:
    say = words(STATION)
    step = view.nearest_step
    assert step is not None
    return [
        token_strip.value(notes(view, step)),
        chart_host.value(
            growth_figure(view, step), label=say.text("growth"), height=HEIGHT, numbers=growth_numbers(view)
        ),
        formula_table(view.facts, step),
        layers_table(view.facts, step),
        uncached_table(of_turn(view, "uncached")),
        models_table(view, step),
    ]


def unavailable(view: View) -> str | None:
    return None if view.nearest_step else words(STATION).text("unavailable")


def notes(view: View, step: Stepped) -> list[Group]:
    """What this step fed to the model, and why the cache holds one position less than there are tokens."""
    say = words(STATION)
    assert view.trace is not None
    title = say.text("count_title", kv_tokens=step.kv_tokens, all=step.position + 1)
    return [
        Group((), label=say.text("fed_title", step=step.step), note=_fed(view, step), as_text=True),
        Group((), label=title, note=_count(view.trace, step), as_text=True),
    ]


def _fed(view: View, step: Stepped) -> str:
    """What the forward took in, and where the positions before it came from."""
    say = words(STATION)
    assert view.trace is not None
    chosen = {"token": visible_bytes(step.token_bytes), "position": step.position}
    before = next((one for one in view.steps if one.step == step.step - 1), None)
    if before is None:
        prefilled = view.trace.prefilled(view.cursor.turn)
        first, last = (prefilled.first, prefilled.last) if prefilled else (0, step.kv_tokens - 1)
        return say.text("fed_prefill", first=first, last=last, count=last - first + 1, **chosen)
    newest = {"fed": visible_bytes(before.token_bytes), "at": before.position, "kv_tokens": step.kv_tokens}
    count = step.shapes["input_ids"][-1]
    if "keys" in step.shapes and count == 1:
        return say.text("fed_token", **newest, **chosen)
    told = say.text("fed_many", count=count, **newest)
    return sentences(told, why_many(view.trace, step), say.text("fed_gave", **chosen))


def _count(trace: Trace, step: Stepped) -> str:
    say = words(STATION)
    token = visible_bytes(step.token_bytes)
    count = say.text("count", prompt=step.position - step.step, sampled=step.step + 1, fed=step.position, token=token)
    gone = step.position - step.kv_tokens
    if "keys" not in step.shapes:
        return sentences(count, say.text("count_no_cache"))
    if gone > 0 and trace.experiment.context.strategy == "sliding_window":
        return sentences(count, say.text("count_gone", gone=gone, kv_tokens=step.kv_tokens))
    return count
