import dataclasses

import gradio as gr
import plotly.graph_objects as go
import pytest

from components.stopping import panel as stopping
from components.stopping.byte_buffer import completed, first_visible, held_after, locate
from components.stopping.eos import eos_figure, eos_numbers, ranges, shut_out, shut_out_table
from components.stopping.reasons import reasons, reasons_table
from components.stopping.text import answer_strip, buffer_table
from components.widgets.host import read
from engine.trace import Stopped

from .handmade import ANSWER, make_experiment, make_facts, make_step, make_trace, make_view


def text_of(cell) -> str:
    return cell if isinstance(cell, str) else cell[0]


def with_events(trace, *events):
    """`trace` with its Stopped replaced by `events`."""
    kept = tuple(event for event in trace.events if event.kind != "stopped")
    return dataclasses.replace(trace, events=(*kept, *events))


def eos_steps(ranks_and_cuts):
    facts = make_facts()
    base = [make_step(i, 21, 15, facts) for i in range(len(ranks_and_cuts))]
    return tuple(
        dataclasses.replace(step, eos=dataclasses.replace(step.eos, rank=rank, cut_by=cut))
        for step, (rank, cut) in zip(base, ranks_and_cuts, strict=True)
    )


def pieces(*tokens: bytes, held=None, texts=None):
    """Steps whose tokens have these bytes."""
    base = make_step(0, 21, 15, make_facts())
    return tuple(
        dataclasses.replace(
            base,
            step=i,
            position=21 + i,
            token_bytes=data,
            held_bytes=held[i] if held else 0,
            text=texts[i] if texts else "",
        )
        for i, data in enumerate(tokens)
    )


# The stop signal.


def test_the_chart_is_the_ranks_of_the_trace_with_one_on_top(view):
    figure = go.Figure(eos_figure(view.steps, selected=2))
    low, high = figure.layout.yaxis.range
    assert low > high, "rank 1 is on top"
    by_step = {step.step: step for step in view.steps}
    series = [trace for trace in figure.data if trace.customdata]
    marked = [item for trace in series for item in zip(trace.x, trace.y, trace.customdata, strict=True)]
    assert len(marked) == len(view.steps)
    for x, y, key in marked:
        assert y == by_step[x].eos.rank
        assert key == {"position": by_step[x].position}
    assert figure.layout.shapes[0].x0 == 2


def test_steps_where_a_stage_cut_the_token_are_marked_with_its_name():
    steps = eos_steps([(900, "top_k"), (5, "top_p"), (1, None), (40, "top_k")])
    named = {trace.name: list(trace.x) for trace in go.Figure(eos_figure(steps, 0)).data if trace.customdata}
    assert named == {"can be drawn": [2], "cut by top-k": [0, 3], "cut by top-p": [1]}
    rows = read(eos_numbers(steps, 1))["rows"]
    assert [text_of(row[-1]) for row in rows] == ["top-k", "top-p", "", "top-k"]
    assert [text_of(row[-2]) for row in rows] == ["900", "5", "1", "40"]


def test_settings_that_shut_the_signal_out():
    steps = eos_steps([(900, "top_k"), (1, "min_new_tokens"), (1, None), (40, "top_k")])
    worst, other = shut_out(steps)
    assert (worst.stage, worst.steps, worst.best_rank) == ("top_k", (0, 3), 40)
    assert (other.stage, other.steps, other.best_rank) == ("min_new_tokens", (1,), 1)
    caption = shut_out_table(steps, [1, 3])["caption"]
    assert "At 3 of 4 steps" in caption
    assert "At 1 of them it was the model's first choice" in caption


def test_a_signal_that_was_never_shut_out():
    steps = eos_steps([(3, None), (1, None)])
    value = shut_out_table(steps, [])
    assert value["caption"] == "EOS could be drawn at every step, 2 in all."
    assert not read(value)["rows"]


def test_a_model_without_an_end_token_says_so(view):
    steps = tuple(dataclasses.replace(step, eos=None) for step in view.steps)
    assert shut_out_table(steps, [])["caption"] == "This model has no end-of-sequence token."
    assert len(go.Figure(eos_figure(steps, 0)).data) >= 1


@pytest.mark.parametrize(("penalty", "said"), [(1.2, "The repetition penalty also lowers"), (0.5, "also raises EOS")])
def test_the_penalty_on_the_end_token_itself_is_told(penalty, said):
    steps = eos_steps([(3, "top_k")])
    stages = (
        *steps[0].stages,
        dataclasses.replace(steps[0].stages[1], name="repetition_penalty", parameters={"repetition_penalty": penalty}),
    )
    steps = (dataclasses.replace(steps[0], stages=stages),)
    eos = steps[0].eos.token_id
    caption = shut_out_table(steps, [eos, 5, eos])["caption"]
    assert said in caption
    assert "already holds 2 times" in caption
    assert "penalty" not in shut_out_table(steps, [5])["caption"]


def test_ranges():
    assert ranges([0, 1, 2, 5, 7, 8]) == "0–2, 5, 7–8"
    assert ranges([]) == ""


# Why it stopped.


def state(view, name):
    return next(reason for reason in reasons(view) if reason.name == name)


def test_a_running_turn_gives_for_each_reason_why_not_yet():
    view = make_view(make_trace(stop=False))
    assert {reason.state for reason in reasons(view)} == {"not_yet", "off"}
    assert "6 of at most 16 new tokens; 27 of 128 positions" in state(view, "length").evidence
    eos = view.steps[-1].eos
    assert f"ranks {eos.rank}" in state(view, "eos").evidence
    assert state(view, "stop_string").state == "off"


def test_the_end_token_is_the_evidence_of_its_stop(view):
    assert state(view, "eos").state == "stopped"
    assert state(view, "eos").evidence == "“<|im_end|>” (id 2) is an end-of-sequence token and was taken at step 5"
    assert [text_of(row[1]) for row in read(reasons_table(view))["rows"]].count("ended the turn") == 1


def test_an_earlier_step_had_not_stopped(view):
    earlier = dataclasses.replace(view, cursor=dataclasses.replace(view.cursor, position=view.steps[2].position))
    assert all(reason.state != "stopped" for reason in reasons(earlier))
    assert "3 of at most 16" in state(earlier, "length").evidence
    assert stopping.stations(earlier)[0].result == "no"
    assert stopping.stations(view)[0].result == "yes: EOS"


@pytest.mark.parametrize(
    ("reason", "evidence", "said"),
    [
        ("length", {"limit": "max_new_tokens", "max_new_tokens": 6, "new_tokens": 6}, "the limit of 6 new tokens"),
        (
            "length",
            {"limit": "context", "context": 27, "prompt_tokens": 21, "new_tokens": 6},
            "context of 27",
        ),
        ("no_candidate", {"stage": "grammar", "step": 6}, "grammar left no token"),
        ("cancelled", {"step": 6}, "somebody pressed Stop"),
        ("cancelled", {"step": 6, "limit": "run_seconds", "seconds": 60.0}, "longer than the 60 seconds"),
        ("tool_call", {}, "complete tool call"),
        ("tool_limit", {"rounds": 8}, "after 8 rounds of calls"),
        ("grammar_end", {"token_id": 2}, "completed the grammar"),
        ("error", {"message": "out of <memory>"}, "out of <memory>"),
        ("stop_string", {"string": "!", "index": 0, "start": 4, "end": 5}, "lies within the token “!” of step 4"),
    ],
)
def test_each_reason_has_its_numbers(reason, evidence, said):
    view = make_view(with_events(make_trace(), Stopped(0, reason, evidence, "")))
    if reason == "stop_string":
        view = make_view(with_events(make_trace(answer=ANSWER[:5]), Stopped(0, reason, evidence, "")))
    assert said in state(view, reason).evidence
    assert state(view, reason).state == "stopped"
    assert stopping.stations(view)[0].result != "no"


def test_what_held_as_well_is_listed():
    stopped = Stopped(0, "length", {"limit": "max_new_tokens", "max_new_tokens": 6, "also": ["eos"]}, "")
    view = make_view(with_events(make_trace(), stopped))
    assert state(view, "length").state == "stopped"
    assert state(view, "eos").state == "also"


# The byte buffer.


def test_a_stop_string_across_tokens():
    steps = pieces(b"It", b" is", b" Par", b"is", b" now")
    assert locate(steps[:4], "is Paris") == locate(steps[:4], "s Paris")
    found = locate(steps[:4], "is Paris")
    assert (found.first_step, found.last_step) == (1, 3)
    assert locate(steps, "is Paris") is None, "it must end in the last token"


def test_an_earlier_look_alike_is_not_the_match():
    found = locate(pieces(b"a", b"b", b"x", b"ab"), "ab")
    assert (found.first_step, found.last_step) == (3, 3)


def test_special_tokens_hold_no_text():
    steps = pieces(b"a", b"<|im_end|>", b"b")
    steps = (steps[0], dataclasses.replace(steps[1], special=True), steps[2])
    found = locate(steps, "ab")
    assert (found.first_step, found.last_step) == (0, 2)
    assert locate(steps, "im_end") is None


def test_a_special_token_that_stands_in_a_stop_string_is_text():
    steps = pieces(b"a", b"<|im_end|>", b"b", held=[0, 10, 0])
    steps = (steps[0], dataclasses.replace(steps[1], special=True), steps[2])
    strings = ["<|im_end|>b"]
    assert [item.data for item in held_after(steps, strings)] == [b"", b"<|im_end|>", b""]
    assert not any(item.left_out for item in held_after(steps, strings))
    assert held_after(steps, ["x"])[1].left_out
    found = locate(steps, completed(steps, ["b", *strings]))
    assert (found.first_step, found.last_step) == (1, 2)


def test_held_bytes_say_what_they_are():
    steps = pieces(b"t", b"he\xf0\x9f", b"\x98\x80 the", held=[1, 2, 4])
    held = held_after(steps, ["the best", " the end"])
    assert [item.data for item in held] == [b"t", b"\xf0\x9f", b" the"]
    assert [item.half_character for item in held] == [False, True, False]
    assert [item.may_become for item in held] == [("the best",), (), (" the end",)]


def test_the_table_shows_bytes_and_text_and_never_a_replacement_character(view):
    value = read(buffer_table(view))
    rows = {int(row[0]): [text_of(cell) for cell in row] for row in value["rows"]}
    assert rows[2][2:7] == ["⟨F0⟩⟨9F⟩", "F0 9F", "–", "⟨F0⟩⟨9F⟩", "half a character"]
    assert rows[3][2:6] == ["⟨98⟩⟨80⟩", "98 80", "😀", ""]
    assert rows[5][-1] == "special mark, not shown"
    assert "\ufffd" not in str(value)
    assert "\ufffd" not in str(read(answer_strip(view)))
    assert value["keys"][2] == {"position": view.steps[2].position}
    assert "The first visible character, “H”, came at step 0" in value["caption"]


def test_a_long_token_shows_its_first_bytes_and_all_on_hover():
    trace = with_events(make_trace(answer=(12,), stop=False))
    (row,) = read(buffer_table(make_view(trace)))["rows"]
    assert row[3][0] == "3C 73 63 72 69 70 74 3E …"
    assert row[3][3] == b"<script>alert(1)</script>".hex(" ").upper()


def test_first_visible_character_skips_white_space_and_halves():
    steps = pieces(b"\n", b"\xf0\x9f", b"\x98\x80", texts=["\n", "", "😀"])
    assert first_visible(steps).step == 2
    assert first_visible(steps[:2]) is None


def test_the_answer_with_and_without_special_marks(view):
    value = read(answer_strip(view))
    texts = ["", ""]
    for chip in value["chips"]:
        texts[chip[0]] += chip[1]
    assert texts[0] == "Hi⟨U+200F⟩😀!"
    assert texts[1] == "Hi⟨U+200F⟩😀!<|im_end|>"
    assert [group[0] for group in value["groups"]] == ["as shown", "with special marks"]


def test_text_held_back_at_the_end_is_shown():
    view = make_view(with_events(make_trace(), Stopped(0, "length", {"limit": "max_new_tokens"}, " the")))
    shown = [chip[1] for chip in read(answer_strip(view))["chips"] if chip[0] == 0]
    assert "".join(shown) == "Hi⟨U+200F⟩😀! the"


# The panel.


def test_the_rail_follows_the_text(view):
    text = stopping.stations(view)[1]
    assert text.result == "Hi⟨U+200F⟩😀!"
    assert text.note == "0 bytes held"
    half = dataclasses.replace(view, cursor=dataclasses.replace(view.cursor, position=view.steps[2].position))
    assert stopping.stations(half)[1].note == "2 bytes held"
    assert [one.result for one in stopping.stations(make_view(make_trace(answer=())))] == ["–", "–"]


def test_render_fills_what_build_makes(view, paris):
    with gr.Blocks():
        parts = stopping.build()
    assert len(stopping.render(view)) == len(parts)
    for step in paris.steps(0):
        assert len(stopping.render(make_view(paris, position=step.position))) == len(parts)
    assert stopping.unavailable(make_view(make_trace(answer=()))) is not None


def test_stop_strings_are_listed_as_text():
    experiment = make_experiment(stop={"stop_strings": ["<b>\n"], "max_new_tokens": 16})
    view = make_view(dataclasses.replace(make_trace(stop=False), experiment=experiment))
    assert "“<b>⏎”" in state(view, "stop_string").evidence
