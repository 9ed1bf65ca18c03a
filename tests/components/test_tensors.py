import dataclasses

import numpy as np
import pytest

from components.panel import Cursor, View
from components.tensors import panel as tensors
from components.tensors.causal_mask import MAX_SIDE, causal_mask, mask_values
from components.tensors.panel import elided
from engine.conversation import Conversation
from tests.components.handmade import make_rendered, make_shapes, make_step, make_trace, make_view
from tests.components.reading import read, station
from tests.engine import conversations
from tests.engine.callers import experiment
from tests.engine.conversations import finish
from tests.engine.models import WINDOW, tiny


def rows(value):
    return [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in read(value)["rows"]]


def note(remark):
    return read(remark)["groups"][0][2]


def test_a_prompt_position_and_the_first_step_show_the_prefill(trace):
    for position in (0, 20, 21):
        forward = tensors.select(make_view(trace, position=position))
        assert (forward.step, forward.first, forward.last, forward.fed) == (None, 0, 20, 21)
        assert forward.ids.tolist() == trace.rendered(0).token_ids.tolist()


def test_a_later_step_was_fed_the_token_before_it(trace):
    for step in trace.steps(0)[1:]:
        forward = tensors.select(make_view(trace, position=step.position))
        assert (forward.first, forward.last) == (step.position - 1, step.position - 1)
        assert forward.ids[-1] == trace.steps(0)[step.step - 1].token_id
        assert len(forward.ids) == step.position


def test_the_tables_repeat_the_traces_shapes(trace):
    view = make_view(trace, position=24)
    inputs, versus, count, *_ = tensors.render(view)
    step, prefilled = trace.steps(0)[3], trace.prefilled(0)
    for name, shape, *_ in rows(inputs):
        assert shape == f"({', '.join(map(str, step.shapes[name]))})"
    for name, before, after in rows(versus):
        assert before == f"({', '.join(map(str, prefilled.shapes[name]))})"
        assert after == f"({', '.join(map(str, step.shapes[name]))})"
    assert {name: values for name, _, values, _ in rows(inputs)}["input_ids"] == "[17]"
    assert {name: values for name, _, values, _ in rows(inputs)}["position_ids"] == "[23]"
    assert [row[1] for row in rows(count)] == ["21", "+ 4", "− 1", "= 24", "24"]
    assert read(count)["rows"][-1][1][1] == "ok"


def test_positions_that_do_not_add_up_are_marked(trace):
    step = dataclasses.replace(trace.steps(0)[2], kv_tokens=0)
    value = read(tensors.count_value(trace.rendered(0), step))
    assert value["rows"][-1][1][:2] == ["0", "warn"]
    assert value["rows"][-2][1] == "= 23"


def test_before_the_first_decode_step_its_column_waits():
    view = make_view(make_trace((15,), stop=False))
    assert {row[2] for row in rows(tensors.render(view)[1])} == {"not yet"}
    assert len(rows(tensors.render(make_view(make_trace((), stop=False)))[2])) == 1


def test_a_mask_that_was_not_extended_shows(trace):
    shapes = trace.steps(0)[3].shapes | {"attention_mask": (1, 21)}
    events = [dataclasses.replace(e, shapes=shapes) if getattr(e, "step", None) == 3 else e for e in trace.events]
    inputs, _, _, remark, mask, *_ = tensors.render(
        make_view(dataclasses.replace(trace, events=tuple(events)), position=24)
    )
    assert "all 1, 21 of them, though the context has 24" in {r[0]: r[2] for r in rows(inputs)}["attention_mask"]
    assert note(remark).startswith("The attention mask ends early, so positions 21–23 count as padding")
    assert "sees everything" not in note(remark)
    assert read(mask)["columns"] == 24


def test_a_history_fed_again_is_told_from_a_rebuilt_cache(trace):
    def caption(**changes):
        shapes = make_shapes(24, 24, trace.facts)
        if not changes["kv_tokens"]:
            shapes = {name: shape for name, shape in shapes.items() if name not in ("keys", "values")}
        step = make_step(3, 21, 18, trace.facts, shapes=shapes, **changes)
        events = [step if getattr(e, "step", None) == 3 else e for e in trace.events]
        values = tensors.render(make_view(dataclasses.replace(trace, events=tuple(events)), position=24))
        return read(values[0])["caption"], rows(values[1])

    reencoded, versus = caption(kv_tokens=0)
    assert "This run keeps no cache, so each step computes the whole context again" in reencoded
    assert [row[2] for row in versus if row[0] == "keys"] == ["none"]
    assert "given back" in caption(kv_tokens=24)[0]


def test_reused_positions_are_not_fed(trace):
    shapes = make_shapes(6, 21, trace.facts)
    prefilled = dataclasses.replace(trace.prefilled(0), first=15, shapes=shapes)
    changed = dataclasses.replace(trace, events=(trace.events[0], prefilled))
    view = make_view(changed)
    inputs, _, _, _, mask, *_ = tensors.render(view)
    assert "Positions 0–14 were in the cache" in read(inputs)["caption"]
    assert {r[0]: r[2] for r in rows(inputs)}["position_ids"] == "[15 16 17 18 19 20]"
    assert (read(mask)["rows"], read(mask)["columns"]) == (6, 21)
    assert station(tensors, view) == ("(1, 6)", "pos 15–20")


@pytest.mark.parametrize(
    ("size", "at", "expected"),
    [
        (3, 0, "[0 1 2]"),
        (12, 11, "[0 1 2 3 4 5 6 7 8 9 10 11]"),
        (13, 12, "[0 1 2 3 4 5 6 7 8 9 10 11 12]"),
        (20, 0, "[0 1 2 3 4 5 … 8 more … 14 15 16 17 18 19]"),
        (40, 20, "[0 1 2 3 4 5 … 12 more … 18 19 20 21 22 … 11 more … 34 35 36 37 38 39]"),
        (20, -5, "[0 1 2 3 4 5 … 8 more … 14 15 16 17 18 19]"),
    ],
)
def test_long_values_lose_their_middle_and_say_how_much(size, at, expected):
    assert elided([str(i) for i in range(size)], at) == expected


def test_the_causal_mask_is_the_lower_triangle():
    assert np.array_equal(causal_mask(0, 5, 0, 5), np.tril(np.ones((5, 5))))
    assert np.array_equal(causal_mask(4, 5, 0, 5), np.ones((1, 5)))
    assert np.array_equal(causal_mask(2, 4, 1, 5), np.tril(np.ones((5, 5)))[2:4, 1:5])


def test_a_big_mask_is_cut_around_the_position_and_says_so():
    remark, mask = mask_values(0, [b"a"] * 1000, 1000, 500)
    value = read(mask)
    assert (value["rows"], value["columns"]) == (MAX_SIDE, MAX_SIDE)
    assert value["x"][value["selected"][1]] == "500 a"
    assert value["y"][value["selected"][0]] == "500 a"
    assert "of 1000 × 1000" in note(remark)
    assert "Shown" not in note(mask_values(0, [b"a", b"b"], 2, 0)[0])


def test_the_station_names_what_is_fed(trace):
    assert station(tensors, make_view(trace)) == ("(1, 1)", "pos 25")
    assert station(tensors, make_view(trace, position=3)) == ("(1, 21)", "pos 0–20")
    only_rendered = make_view(dataclasses.replace(trace, events=(make_rendered(),)))
    assert station(tensors, only_rendered) == ("–", "")
    assert tensors.unavailable(only_rendered)
    assert tensors.unavailable(make_view(trace)) is None


def test_hostile_token_text_is_a_plain_label(trace):
    labels = read(tensors.render(make_view(trace, position=3))[4])["x"]
    assert labels[10] == "10 ⟨E2⟩⟨91⟩"
    assert labels[12] == "12 <script>alert(1)</script>"


def test_the_recorded_second_turn_feeds_only_what_is_new(paris):
    prefilled, rendered = paris.prefilled(1), paris.rendered(1)
    assert prefilled.first == rendered.reused > 37
    inputs, versus, count, *_ = tensors.render(make_view(paris, turn=1))
    assert {row[0]: row[1] for row in rows(versus)}["input_ids"] == f"(1, {len(rendered.token_ids) - rendered.reused})"
    assert rows(count)[-1][1] == rows(count)[-2][1].removeprefix("= ")
    assert "Decode step 11" in read(inputs)["caption"]


def test_a_window_built_anew_from_what_left_before_the_turn_is_shown(llama):
    said = ("the cat sat on the mat and then the dog", "one two", "three")
    window = {"strategy": "sliding_window", "max_tokens": 40}
    fields = {"follow_ups": ["ok", "and"], "stop": {"max_new_tokens": 30}, "tools": [], "context": window}
    talking = Conversation(llama, experiment(said, **fields))
    while len(talking.trace.steps(2)) < 2:
        talking.advance()
    talking.release()
    talking.advance()
    view = View(talking.trace.facts, talking.trace, Cursor(turn=2))
    fed, known = view.steps[-1].shapes["input_ids"][-1], view.steps[-1].position
    assert fed > known
    inputs = read(tensors.render(view)[0])
    ids, positions = (row[2] for row in inputs["rows"] if row[0] in ("input_ids", "position_ids"))
    assert ids.startswith(f"[… {fed - known} more … {view.rendered.token_ids[0]} ")
    assert positions.startswith("[0 1 2 ")
    assert f"Decode step 2: {fed} tokens in one forward" in inputs["caption"]
    assert "the cache had been given back" in inputs["caption"]


def test_of_a_window_that_counts_anew_nothing_is_said_to_have_been_given_back(llama):
    window = {"strategy": "sliding_window", "max_tokens": 18, "positions": "restart"}
    trace = finish(Conversation(llama, conversations.experiment(context=window, stop={"max_new_tokens": 6})))
    inputs, versus, *_ = tensors.render(View(trace.facts, trace, Cursor()))
    for caption in (read(inputs)["caption"], read(versus)["caption"]):
        assert "all that stays in it is computed anew at every step" in caption
        assert "given back" not in caption
        assert "grow by one" not in caption


def test_a_window_is_said_to_let_mask_and_cache_grow_until_it_is_full(llama):
    window = {"strategy": "sliding_window", "max_tokens": 18}
    trace = finish(Conversation(llama, conversations.experiment(context=window, stop={"max_new_tokens": 6})))
    versus = read(tensors.render(View(trace.facts, trace, Cursor()))[1])
    assert "grow by one each step until the window is full" in versus["caption"]


@pytest.mark.parametrize("position", [0, None])
def test_what_a_sliding_layer_sees_and_holds_is_told(position):
    trace = finish(Conversation(tiny("sliding"), conversations.experiment()))
    _, versus, _, note = map(read, tensors.render(View(trace.facts, trace, Cursor(position=position)))[:4])
    held = trace.steps(0)[-1].shapes["keys"][2]
    assert f"a sliding layer's cache only until it holds {held} positions" in versus["caption"]
    assert f"in its sliding layers: there a position sees only the {WINDOW} newest" in note["groups"][0][2]


def test_of_a_model_without_sliding_layers_they_are_not_spoken_of(trace):
    _, versus, _, note = map(read, tensors.render(make_view(trace))[:4])
    assert "sliding" not in versus["caption"] + note["groups"][0][2]
    assert versus["caption"].endswith("The mask and the cache still grow by one each step.")
