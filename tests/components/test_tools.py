"""The Tools panel shows the loop with the numbers of its trace, the definitions, and what came back."""

import dataclasses
from typing import Any

import gradio as gr
import pytest

from components import transcript_strip
from components.compose import answered, compose, form_values, transcript
from components.panel import Cursor, View
from components.prompt import panel as prompt
from components.tools import panel as tools
from components.tools.loop import grammar_forced, rounds
from engine.conversation import Conversation
from engine.experiment import parse_experiment
from engine.stages.definitions import fallback_text
from engine.tools.registry import TOOLS
from engine.trace import Trace
from tests.components.handmade import make_experiment, make_trace, make_view
from tests.components.reading import read, station
from tests.engine.callers import SUM, call, caller, experiment
from tests.engine.conversations import finish

HOSTILE = call("<img src=x onerror=alert(1)>", **{"${x}": "\u202e"})


def view_of(trace: Trace) -> View:
    return View(trace.facts, trace, Cursor(turn=trace.turns - 1))


def run(*answers: str, **fields: Any) -> Trace:
    return finish(Conversation(caller(), experiment(answers, **fields)))


@pytest.fixture(scope="module")
def chat() -> Trace:
    """Two rounds of calls, then an answer."""
    return run(f"{SUM}{HOSTILE}", call(expression="1/0"), "It is 5.")


def cells(value: dict[str, Any]) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in read(value)["rows"]]


def test_each_turn_is_a_row_and_each_further_call_one_more(chat: Trace) -> None:
    rows = cells(tools.render(view_of(chat))[0])
    assert [row[0] for row in rows] == ["1", "", "2", "3"]
    assert [row[7] for row in rows[:3:2]] == ["calculator(expression='2+3')", "calculator(expression='1/0')"]
    assert rows[1][7].startswith("<img src=x onerror=alert(1)>(${x}='")
    assert [row[8] for row in rows] == [
        "2+3 = 5", "unknown tool '<img src=x onerror=alert(1)>'; there are: calculator, clock", "division by zero",
        "It is 5.",
    ]  # fmt: skip


def test_the_numbers_of_a_turn_add_up(chat: Trace) -> None:
    """Prefilled and reused make the prompt; the cache holds the prompt and all tokens made but the last."""
    for turn, row in zip(range(3), [row for row in cells(tools.render(view_of(chat))[0]) if row[0]], strict=True):
        rendered, made = chat.rendered(turn), len(chat.steps(turn))
        assert rendered is not None
        computed, extent = row[1].split(" ")
        first, last = (int(part) for part in extent.strip("()").split("–"))
        assert int(computed) == last - first + 1
        assert first == int(row[2]) == rendered.reused
        assert last + 1 == len(rendered.token_ids)
        assert int(row[3]) == made
        assert int(row[5]) == len(rendered.token_ids) + made - 1
    caption = read(tools.render(view_of(chat))[0])["caption"]
    assert caption.startswith("Turns for this question: 3.")
    assert f"Tokens made: {sum(len(chat.steps(turn)) for turn in range(3))}. Calls: 3," in caption


def test_the_definitions_and_the_results_stand_where_the_prompt_has_them(chat: Trace) -> None:
    rendered = chat.rendered(2)
    assert rendered is not None
    _, _, seen, definitions = tools.render(view_of(chat))
    (chip,) = read(definitions)["chips"]
    assert chip[1].replace("⏎", "") == fallback_text([TOOLS["calculator"].definition, TOOLS["clock"].definition])
    text = b"".join(rendered.token_bytes[: chip[2]]).decode()
    assert rendered.text.startswith(text + "You can use these tools:")
    assert "has no place for tools" in read(definitions)["groups"][0][2]
    groups, chips = read(seen)["groups"], read(seen)["chips"]
    assert len(groups) == 3
    assert [one[1] for one in chips if one[3] == "tool"][::2] == ["2+3 = 5", "Error: division by zero"]


def test_forced_tokens_are_counted_and_marked() -> None:
    trace = run(tools=["clock"], tool_choice="required", stop={"max_new_tokens": 80})
    first = rounds(trace, trace.turns - 1)[0]
    legal = [one.parameters["legal"] for step in first.steps for one in step.stages if one.name == "grammar"]
    assert first.forced == legal.count(1) > 20
    assert [grammar_forced(step) for step in first.steps] == [count == 1 for count in legal]
    shown = read(tools.render(view_of(trace))[1])
    assert shown["groups"][0][0] == f"turn 1: {legal.count(1)} of {len(legal)} tokens forced"
    assert [chip[4] == "grammar" for chip in shown["chips"]] == [count == 1 for count in legal]
    view = View(trace.facts, trace, Cursor(turn=0))
    chips = transcript_strip.timeline(view)[0].chips[-len(legal) :]
    assert [chip.state == "grammar" for chip in chips] == [count == 1 for count in legal]
    assert all(("forced by the grammar" in chip.title) == (chip.state == "grammar") for chip in chips)


def test_rounds_of_an_earlier_message_are_not_of_this_one() -> None:
    trace = run(SUM, "5", "Hello", follow_ups=["Hi"])
    assert [one.turn for one in rounds(trace, 1)] == [0, 1]
    assert [one.turn for one in rounds(trace, 2)] == [2]
    assert read(tools.render(view_of(trace))[2])["groups"][0][2] == "No result came back yet."


def test_the_result_of_an_earlier_question_is_not_that_of_a_call_under_way() -> None:
    conversation = Conversation(caller(), experiment([SUM, "5", SUM, "5"], follow_ups=["Again"]))
    seen = {}
    while conversation.advance():
        view = view_of(conversation.trace)
        count = sum(len(one.calls) for one in rounds(conversation.trace, view.cursor.turn))
        shown = read(tools.render(view)[2])
        results = 0 if shown["groups"][0][2] else len(shown["groups"])
        seen.setdefault(view.cursor.turn, set()).add((count, results))
    assert seen == {0: {(0, 0), (1, 0)}, 1: {(1, 1)}, 2: {(0, 0), (1, 0)}, 3: {(1, 1)}}


@pytest.mark.parametrize("left", range(4))
def test_every_state_of_a_round_is_shown(left: int) -> None:
    conversation = Conversation(caller(), experiment([SUM, "5"]))
    kinds = ["prefilled", "stepped", "stopped", "tool_called"]
    while conversation.advance()[-1].kind != kinds[left]:
        pass
    row = cells(tools.render(view_of(conversation.trace))[0])[0]
    said = ["not ended yet", "not ended yet", "called, not run yet", "calculator(expression='2+3')"]
    assert row[7] == said[left]


def test_the_rail_and_why_there_is_nothing(chat: Trace) -> None:
    with gr.Blocks():
        assert len(tools.build()) == len(tools.render(view_of(chat)))
    assert station(tools, view_of(chat)) == ("3 calls", "calculator")
    assert station(tools, make_view()) == ("–", "")
    assert tools.unavailable(view_of(chat)) is None
    assert "no tools" in str(tools.unavailable(make_view()))
    none = dataclasses.replace(make_trace(answer=()), experiment=make_experiment(tools=["clock"]))
    assert station(tools, make_view(none)) == ("no call", "auto")


def test_the_prompt_knows_who_wrote_what(chat: Trace) -> None:
    rendered = chat.rendered(2)
    assert rendered is not None
    rows = cells(prompt.parts_value(rendered, prompt.select(rendered), chat, position=None))
    assert [row[:2] for row in rows if row[0] == "tool"] == [["tool", "the template"], *[["tool", "a tool"]] * 3]


def test_tool_messages_are_part_of_the_conversation(chat: Trace) -> None:
    groups = transcript_strip.conversation(view_of(chat))
    shown = [(group.label, "".join(chip.text for chip in group.chips)) for group in groups if group.role == "tool"]
    assert shown[::2] == [("tool", "2+3 = 5"), ("tool", "Error: division by zero")]


# The form.


def test_a_chat_with_calls_begins_again_at_its_question_and_goes_on_with_all_of_it(chat: Trace) -> None:
    assert transcript(chat) == [{"role": "user", "content": "the cat"}]
    assert [one["role"] for one in answered(chat)] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert answered(chat)[-1]["content"] == "It is 5."


def test_tools_need_the_template() -> None:
    given = make_experiment(tools=["clock", "units"], tool_choice="required", clock="2026-05-01T00:00:00+02:00")
    form = form_values(given)
    messages = [{"role": "user", "content": "?"}]
    again = parse_experiment(compose(form, shown=given, model="tiny", messages=messages), models=["tiny"], tools=TOOLS)
    assert (again.tools, again.tool_choice, again.clock) == (given.tools, given.tool_choice, given.clock)
    raw = compose(form | {"use_template": False}, shown=given, model="tiny", messages=messages)
    assert parse_experiment(raw, models=["tiny"], tools=TOOLS).tools == ()


def test_the_form_offers_the_tools_there_are() -> None:
    assert {name for name in form_values(make_experiment()) if name.startswith("tool_")} == {
        "tool_choice", *(f"tool_{name}" for name in TOOLS),
    }  # fmt: skip
