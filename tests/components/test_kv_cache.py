import dataclasses

import gradio as gr
import plotly.graph_objects as go
import pytest

from components.kv_cache import growth as kv_growth
from components.kv_cache import panel as kv_cache
from components.kv_cache.growth import growth_figure
from components.kv_cache.tables import (
    formula_table,
    formula_text,
    layer_runs,
    layers_table,
    models_table,
    uncached_table,
)
from components.widgets.host import read
from engine.answers.uncached import Uncached
from engine.catalog import load_catalog
from engine.trace import Prefilled

from .handmade import make_facts, make_shapes, make_step, make_trace, make_view


def texts(rows) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in rows]


def reused_view(reused: int):
    """A turn whose first `reused` positions came from the cache."""
    trace = make_trace()
    facts, n = trace.facts, 21
    events = [
        dataclasses.replace(event, reused=reused)
        if event.kind == "rendered"
        else Prefilled(0, reused, n - 1, make_shapes(n - reused, n, facts), n, facts.kv_bytes_per_token * n, 0.1)
        if event.kind == "prefilled"
        else event
        for event in trace.events
    ]
    return make_view(dataclasses.replace(trace, events=tuple(events)))


# Layer by layer.


def test_equal_layers_share_a_row_whose_shape_is_the_measured_one(view):
    step = view.step
    (run,) = layer_runs(view.facts, step.kv_tokens)
    assert (run.first, run.last, run.kind) == (0, 1, "full")
    assert run.shape == step.shapes["keys"] == step.shapes["values"]
    keys = 1
    for size in step.shapes["keys"]:
        keys *= size
    assert run.bytes_each == 2 * keys * view.facts.itemsize


@pytest.mark.parametrize("tokens", [1, 3, 4, 5, 26])
def test_layers_of_other_kinds_are_told_apart_and_add_up(tokens):
    facts = make_facts(layers=5, layer_kinds=("full", "sliding", "sliding", "shared", "full"), sliding_window=5)
    runs = layer_runs(facts, tokens)
    assert [(run.first, run.last, run.kind) for run in runs] == [
        (0, 0, "full"), (1, 2, "sliding"), (3, 3, "shared"), (4, 4, "full"),
    ]  # fmt: skip
    assert runs[1].shape == (1, 2, min(tokens, 4), 4)
    assert runs[2].shape is None
    assert sum(run.bytes_each * run.layers for run in runs) == facts.kv_bytes(tokens)


def test_the_measured_bytes_get_a_tick_only_where_the_formula_gives_the_same(view):
    step = view.step
    rows = texts(read(layers_table(view.facts, step))["rows"])
    assert rows[-2][-1] == f"{step.kv_bytes:,}"
    assert rows[-1][-1] == f"{step.kv_bytes:,} ✓"
    odd = dataclasses.replace(step, kv_bytes=step.kv_bytes + 4)
    assert texts(read(layers_table(view.facts, odd))["rows"])[-1][-1] == f"{odd.kv_bytes:,} ✗"


# The steps.


@pytest.mark.parametrize(
    ("fed", "said"),
    [
        (1, "One token, "),
        (20, "20 tokens in one forward, "),
        (60, "60 tokens in one forward, "),
    ],
)
def test_a_step_that_fed_more_than_one_token_says_so(fed, said):
    facts = make_facts()
    trace = make_trace()
    steps = trace.steps(0)
    rebuilt = dataclasses.replace(steps[3], shapes=make_shapes(fed, 24, facts))
    view = make_view(
        dataclasses.replace(trace, events=tuple(rebuilt if one is steps[3] else one for one in trace.events)),
        position=24,
    )
    assert kv_cache.notes(view, rebuilt)[0].note.startswith(said)


# The formula.


def test_the_formula_is_written_out_with_this_models_numbers(view):
    text = formula_text(view.facts, view.step)
    each, tokens = 2 * 2 * 2 * 4 * 4, view.step.kv_tokens
    assert f"2 layers × 2 KV heads × 4 numbers × 4 bytes = {each} bytes a position" in text
    assert f"× {tokens} positions = {each * tokens:,} bytes" in text
    assert each * tokens == view.step.kv_bytes


def test_both_precisions_are_priced_and_the_runs_own_is_measured(view):
    rows = texts(read(formula_table(view.facts, view.step))["rows"])
    assert rows[0][1:] == ["128 B", "64 B"]
    assert rows[-1][1:] == [f"{view.step.kv_bytes:,} ✓", "–"]
    half = make_facts(dtype="bfloat16", itemsize=2)
    step = make_step(5, 21, 2, half)
    rows = texts(read(formula_table(half, step))["rows"])
    assert rows[0][1:] == ["128 B", "64 B"]
    assert rows[-1][1:] == ["–", f"{step.kv_bytes:,} ✓"]


def test_a_sliding_model_says_where_it_stops_growing():
    facts = make_facts(layer_kinds=("full", "sliding"), sliding_window=9)
    text = formula_text(facts, make_step(5, 21, 2, facts))
    # 2 × 2 × 4 × 4 = 64; 26 positions in the full layer and 8 in the other.
    assert "= 64 bytes a position in one layer; × (1 full layer × 26 positions + 1 sliding layer × 8 positions)" in text
    assert f"= {64 * (26 + 8):,} bytes. A sliding layer holds at most 8 positions" in text


# Growth.


def test_parts_are_reused_computed_and_sampled():
    view = reused_view(8)
    parts = {part.origin: part for part in kv_growth.select(view)}
    assert {name: part.positions for name, part in parts.items()} == {"reused": 8, "computed": 13, "sampled": 5}
    assert sum(part.positions for part in parts.values()) == view.steps[-1].kv_tokens
    each = view.facts.kv_bytes_per_token
    for part in parts.values():
        assert list(part.bytes_held) == [each * tokens for tokens in part.fed]
    assert parts["sampled"].fed == tuple(step.position for step in view.steps)
    assert parts["sampled"].bytes_held == tuple(step.kv_bytes for step in view.steps)


def test_without_reuse_nothing_is_called_reused(view):
    assert [part.origin for part in kv_growth.select(view)] == ["computed", "sampled"]


def test_the_line_of_a_sliding_model_bends_at_its_window():
    facts = make_facts(layer_kinds=("full", "sliding"), sliding_window=9)
    view = make_view(make_trace(facts=facts))
    computed = kv_growth.select(view)[0]
    assert computed.fed == (0, 8, 21)
    assert computed.bytes_held[1] == facts.kv_bytes(8)


def test_the_chart_is_the_parts_in_one_unit_with_the_step_marked():
    view = reused_view(8)
    step = view.steps[3]
    figure = go.Figure(growth_figure(view, step))
    drawn = [round(value * 1024) for trace in figure.data for value in trace.y]
    assert drawn == [held for part in kv_growth.select(view) for held in part.bytes_held]
    assert figure.layout.yaxis.title.text == "KiB"
    assert figure.layout.shapes[0].x0 == step.kv_tokens
    assert [key["position"] for key in figure.data[-1].customdata] == [one.position for one in view.steps]


# What a step feeds.


def test_a_step_feeds_the_token_before_it(view):
    step, before = view.steps[4], view.steps[3]
    one = dataclasses.replace(view, cursor=dataclasses.replace(view.cursor, position=step.position))
    fed, count = kv_cache.notes(one, step)
    assert f"One token, “⟨98⟩⟨80⟩” at position {before.position}" in fed.note
    assert f"held {step.kv_tokens} positions" in fed.note
    assert f"21 of the prompt + 5 sampled − 1 = {step.kv_tokens}" in count.note


def test_the_first_step_feeds_nothing_of_its_own(view):
    step = view.steps[0]
    fed, count = kv_cache.notes(view, step)
    assert "positions 0 to 20, 21 of them" in fed.note
    assert "21 of the prompt + 1 sampled − 1 = 21" in count.note


# Other models, and without a cache.


def test_the_same_formula_on_the_catalogues_models(view):
    view = dataclasses.replace(view, catalog=load_catalog().models)
    rows = {row[0]: row[1:] for row in texts(read(models_table(view, view.step))["rows"])}
    assert rows["Qwen2.5 7B Instruct"][3] == "56.00 KiB"
    assert rows["Qwen2.5 72B"][3] == "320.00 KiB"
    assert rows["Llama 3 8B"][3:] == ["128.00 KiB", "3.25 MiB", "16.00 GiB", "64.00 GiB"]
    assert rows["GPT-2"][1] == "12 → 12"
    assert rows["GPT-2"][5] == rows["GPT-2"][6], "every head already has its own"


def test_layers_that_keep_nothing_cost_nothing(view):
    whole = load_catalog().find("llama-3-8b")
    view = dataclasses.replace(view, catalog=(whole, whole.model_copy(update={"title": "Hybrid", "kv_layers": 8})))
    rows = {row[0]: row[1:] for row in texts(read(models_table(view, view.step))["rows"])}
    assert (rows["Llama 3 8B"][0], rows["Llama 3 8B"][3]) == ("32", "128.00 KiB")
    assert (rows["Hybrid"][0], rows["Hybrid"][3]) == ("32 → 8", "32.00 KiB")


def test_both_ways_of_one_step_side_by_side(view):
    found = Uncached(0, 4, 24, 1, 25, 3.2e-5, True, 0.05, 0.4)
    value = read(uncached_table(found))
    assert texts(value["rows"]) == [["with the cache", "24", "1", "50 ms"], ["without", "0", "25", "400 ms"]]
    assert value["rows"][0][-1][2] == 0.125
    assert "3.2e-05. That is rounding" in value["caption"]
    assert "rounding" not in uncached_table(dataclasses.replace(found, max_difference=0.5))["caption"]
    assert "different tokens" in uncached_table(dataclasses.replace(found, same_best=False))["caption"]
    assert "Press the button" in uncached_table(None)["caption"]


# The panel.


def test_the_rail_shows_what_the_cache_holds(view):
    (station,) = kv_cache.stations(view)
    assert station.result == "3.25 KiB"
    assert station.note == "+128 B"
    assert kv_cache.stations(make_view(make_trace(answer=())))[0].result == "–"


def test_render_fills_what_build_makes(view, paris):
    with gr.Blocks():
        parts = kv_cache.build()
    assert len(kv_cache.render(view)) == len(parts)
    for turn in range(paris.turns):
        for step in paris.steps(turn):
            shown = make_view(paris, turn=turn, position=step.position)
            assert len(kv_cache.render(shown)) == len(parts)
            assert paris.facts.kv_bytes(step.kv_tokens) == step.kv_bytes
    assert kv_cache.unavailable(make_view(make_trace(answer=()))) is not None


def test_hostile_tokens_stay_text():
    view = make_view(make_trace(answer=(12, 13), stop=False))
    fed, _ = kv_cache.notes(view, view.step)
    assert "“<script>alert(1)</script>” at position 21" in fed.note
    assert "${x}" in fed.note
