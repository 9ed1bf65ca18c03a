"""The Turns panel: every number follows from the others, and how each answer was closed."""

import dataclasses
from typing import Any

import pytest

from components.turns import closing, ledger
from components.turns import panel as turns
from components.turns.checks import cold_table, prefix_note, time_table
from engine.answers.cold_turn import ColdTurn
from engine.answers.time_in_prompt import TimeCase, TimeInPrompt
from engine.conversation import Conversation
from engine.trace import Parted, PrefixLookup, Stopped, Trace
from tests.components.chats import CLOSE, FIRST, chat, grown, second, token_id
from tests.components.handmade import make_facts, make_trace, make_view
from tests.components.reading import read, read_figure, station
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny

# The ledger.


def test_each_number_follows_from_the_others() -> None:
    first, after = ledger.select(grown())
    # By hand: 5 tokens of the question, 2 of the generation prompt; 3 of the answer, of which the last was not fed.
    assert (first.context, first.cached, first.reused, first.computed, first.dropped) == (7, 0, 0, 7, 0)
    assert (first.answer, first.held, first.source) == (3, 9, "none")
    # The whole cache of 9 is the beginning of 5 + 2 + 2 + 2 + 5 + 2.
    assert (after.context, after.cached, after.reused, after.computed, after.dropped) == (18, 9, 9, 9, 0)
    assert (after.answer, after.held, after.source) == (0, 18, "own")


def test_the_recorded_chat_adds_up_on_the_page(paris: Trace) -> None:
    value = [read(part) for part in turns.render(make_view(paris, turn=1))]
    rows = [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in value[0]["rows"]]
    assert rows == [
        ["1", "37", "0", "0", "37", "0", "8", "44"],
        ["2", "73", "44", "44", "29", "0", "12", "84"],
    ]
    for _, context_, cached, reused, computed, dropped, answer, after in rows:
        assert int(reused) + int(computed) == int(context_)
        assert int(cached) - int(reused) == int(dropped)
        assert int(context_) + int(answer) - 1 == int(after)
    assert rows[1][2] == rows[0][7]
    assert "44 reused + 29 computed = 73" in value[0]["caption"]
    assert "73 + 12 of the answer − 1 = 84" in value[0]["caption"]
    assert station(turns, make_view(paris, turn=1)) == ("2 turns", "44 reused +29")


def test_the_chart_stacks_what_the_table_says(paris: Trace) -> None:
    figure = read_figure(turns.render(make_view(paris, turn=1))[1])
    assert {bar["name"]: bar["x"] for bar in figure["data"]} == {
        "reused": [0, 44], "computed": [37, 29], "dropped": [0, 0]
    }  # fmt: skip
    assert figure["layout"]["barmode"] == "stack"


def test_one_turn_says_what_to_do_and_no_turn_says_why_there_is_nothing() -> None:
    view = make_view()
    assert turns.unavailable(view) is None
    value = [read(part) for part in turns.render(view)]
    assert "Send a second message" in value[2]["caption"]
    assert station(turns, view) == ("1 turn", "0 reused +21")
    empty = dataclasses.replace(view, trace=dataclasses.replace(make_trace(), events=()))
    assert turns.unavailable(empty)
    assert station(turns, empty) == ("–", "")


def test_reuse_from_the_cache_of_system_prompts_drops_nothing() -> None:
    trace = make_trace()
    rendered = dataclasses.replace(trace.rendered(0), reused=7, prefix=PrefixLookup(1, 7, 7, None))  # type: ignore[type-var]
    (row,) = ledger.select(dataclasses.replace(trace, events=(rendered, *trace.events[1:])))
    assert (row.source, row.reused, row.computed, row.dropped) == ("prefix", 7, 14, 0)


def test_of_a_turn_that_was_refused_nothing_is_said_to_be_computed(paris: Trace) -> None:
    ended = Stopped(2, "error", {"field": "messages", "message": "too long"}, "")
    refused = dataclasses.replace(paris.rendered(1), turn=2, reused=0, cached=0)  # type: ignore[type-var]
    view = make_view(dataclasses.replace(paris, events=(*paris.events, refused, ended)), turn=2)
    shown = read(turns.render(view)[0])
    cells = [cell if isinstance(cell, str) else cell[0] for cell in shown["rows"][2]]
    assert cells == ["3", "73", "0", "0", "–", "0", "0", "–"]
    assert shown["caption"].startswith("Turn 3 was refused: none of the 73 positions of its context was computed. All")
    assert "183 positions of context, 66 of them computed" in shown["caption"]  # 37 + 73 + 73; 37 + 29
    assert station(turns, view) == ("3 turns", "refused")


# Ends.


@pytest.mark.parametrize(
    ("trace", "ended", "said"),
    [
        (grown(), "said", "The model ended it with <|im_end|>"),
        (chat(FIRST, ("Hello", "<|endoftext|>"), second("Hello")), "said_other", "closes every answer with <|im_end|>"),
        (chat(FIRST, ("Hello", CLOSE), second("Hello"), forced_end=True), "person", "You ended it"),
        (chat(FIRST, ("Hel", "lo"), second("Hel", "lo"), reason="length"), "length", "which the model had not said"),
        (chat(FIRST, ("Hel", "lo"), second("Hel"), reason="stop_string"), "stop_string", "Ended by a stop string"),
        (chat(FIRST, ("{", "}"), second("{", "}"), reason="grammar_end"), "other", "Ended (grammar): the template"),
    ],
)
def test_how_an_answer_ended_and_who_closed_it(trace: Trace, ended: str, said: str) -> None:
    found = closing.select(trace, 0)
    assert found is not None
    assert (found.ended, found.written) == (ended, "<|im_end|>\n")
    (row,) = read(turns.render(make_view(trace, turn=1))[3])["rows"]
    assert said in row[-1]
    assert row[3] == "<|im_end|>⏎"


def test_an_end_that_nothing_followed_is_not_closed_by_anyone(paris: Trace) -> None:
    found = closing.select(paris, 1)
    assert found is not None
    assert (found.ended, found.written) == ("length", None)
    assert closing.select(make_trace(stop=False), 0) is None


def last_column(trace: Trace) -> list[str]:
    return [row[-1] for row in read(turns.render(make_view(trace, turn=trace.turns - 1))[3])["rows"]]


def test_an_answer_without_text_is_not_said_to_be_the_last() -> None:
    end = [{"turn": 0, "step": 0, "token_id": 2}]
    trace = finish(Conversation(tiny("llama"), experiment(forced=end, follow_ups=["and"])))
    assert trace.answer(0) == ""
    first, second_ = last_column(trace)
    assert first.startswith("The answer has no text")
    assert second_.startswith("No turn has followed yet")


@pytest.mark.parametrize(("strategy", "limit"), [("drop_oldest", 40), ("sliding_window", 20), ("drop_middle", 70)])
def test_an_answer_that_a_strategy_left_out_is_not_said_to_be_the_last(strategy: str, limit: int) -> None:
    context = {"strategy": strategy, "max_tokens": limit}
    say = [{"turn": turn, "step": step, "token_id": 67} for turn in range(4) for step in range(6)]
    fields = {"follow_ups": ["and then", "the cat sat", "ok"], "stop": {"max_new_tokens": 6}, "forced": say}
    trace = finish(Conversation(tiny("llama"), experiment(context=context, **fields)))
    assert trace.turns == 4
    for turn, said in enumerate(last_column(trace)[:-1]):
        after = trace.rendered(turn + 1)
        assert after is not None
        kept = any(span.message == 2 * turn + 1 and span.kind == "content" for span in after.spans)
        assert said.startswith("Ended by length" if kept else "The next turn holds none of its text")
    assert any(said.startswith("The next turn holds none") for said in last_column(trace))


@pytest.mark.parametrize(
    ("reason", "told"), [("length", "Ended (length), and"), ("stop_string", "Ended (stop string)")]
)
def test_an_end_mark_at_the_very_end_is_told_whatever_ended_the_answer(reason: str, told: str) -> None:
    trace = chat(FIRST, ("Hel", CLOSE), second("Hel"), reason=reason)
    marked = dataclasses.replace(trace, facts=make_facts(eos_ids=(token_id(CLOSE),)))
    (said,) = last_column(marked)
    assert said.startswith(told)
    assert "is an end mark as well" in said
    assert "had not said" not in said


# What is asked for.


def test_the_cold_turn_beside_the_warm_one() -> None:
    found = ColdTurn(1, 44, 73, 0.1, True, 0.35, 2.3e-5, True, (1, 2, 3), (1, 2, 3), None)
    value = read(cold_table(found))
    assert [row[1:3] for row in value["rows"]] == [["44", "29"], ["0", "73"]]
    assert value["rows"][0][3][0] == "100 ms"
    assert value["rows"][1][4] == "4.79 ms"  # 350 / 73
    assert "saved 250 ms" in value["caption"]
    assert "2.3e-05" in value["caption"]
    assert "3 tokens, all of them the same" in value["caption"]
    other = dataclasses.replace(found, cold=(1, 9, 3), first_difference=1, cold_seconds=0.05)
    said = read(cold_table(other))["caption"]
    assert "step 1 is another" in said
    assert "cold was 50 ms faster" in said
    bare = read(cold_table(dataclasses.replace(found, reused=0, again=False, max_difference=0.0)))
    assert bare["rows"][0][0] == "with reuse, as it was in its time"
    assert bare["caption"].startswith("This turn reused nothing")
    assert "same to the last bit" in bare["caption"]


def prefixed(**fields: Any) -> str:
    rendered = dataclasses.replace(make_trace().rendered(0), **fields)  # type: ignore[type-var]
    return str(read(prefix_note(rendered))["groups"])


def test_the_cache_of_system_prompts_says_hit_miss_and_what_broke_it() -> None:
    assert "Not looked up" in prefixed()
    assert "Hit: 7 positions" in prefixed(reused=7, prefix=PrefixLookup(2, 7, 7, None))
    assert "No system prompt is kept yet" in prefixed(prefix=PrefixLookup(0, 7, 0, None))
    assert "begins like this one; 2 are kept" in prefixed(prefix=PrefixLookup(2, 7, 0, Parted(0, 5, 1)))
    broken = prefixed(reused=4, prefix=PrefixLookup(2, 7, 4, Parted(4, 77, 9)))
    assert "Part of it: 4 of 7" in broken
    assert "after “<|im_start|>system⏎Be” this chat has “␣kind” (id 9), the kept one id 77" in broken


def test_a_time_first_and_last() -> None:
    cases = (TimeCase("first", 60, 7, b" 09:4", b"1", b"2"), TimeCase("last", 60, 40, b" 09:4", b"1", b"2"))
    rows = read(time_table(TimeInPrompt("Be kind.", cases)))["rows"]
    assert [row[2][0] for row in rows] == ["7", "40"]
    assert rows[0][3] == "␣09:4‖1 → 2"
