"""Where two turns part and why, on chats made by hand."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from components.turns import cause
from components.turns import panel as turns
from engine.trace import Parted, Trace
from engine.truncated import Truncated
from tests.components.chats import (
    CLOSE,
    FIRST,
    GO,
    MORE,
    OPEN,
    A,
    U,
    answered,
    asked,
    chat,
    grown,
    second,
    system,
    token_id,
)
from tests.components.handmade import make_view
from tests.components.reading import read

CASES: dict[str, tuple[Trace, int, str, str]] = {}


def case(name: str, trace: Trace, position: int, place: str, why: str) -> None:
    CASES[name] = (trace, position, place, why)


case(
    "the template leaves thoughts out",
    chat(FIRST, ("<think>", "hm", "</think>", "Hello", CLOSE), second("Hello")),
    7,
    "answer",
    "thinking",
)
case(
    "the generation prompt opens thoughts that history has not",
    chat(
        [*asked("Hi"), (A, None, "scaffold", (OPEN, "assistant\n", "<think>", "</think>"))],
        ("Hello", CLOSE),
        second("Hello"),
    ),
    7,
    "generation_prompt",
    "thinking",
)
case(
    "the generation prompt is another line",
    chat([*asked("Hi"), (A, None, "scaffold", (OPEN, "bot\n"))], ("Hello", CLOSE), second("Hello")),
    6,
    "generation_prompt",
    "generation_prompt",
)
case(
    "another system prompt",
    chat([*system("Be ", "kind"), *FIRST], ("Hello", CLOSE), [*system("Be ", "rude"), *second("Hello")]),
    3,
    "system",
    "system",
)
case(
    "a time in the system prompt",
    chat(
        [*system("It is 09:4", "1", "."), *FIRST], ("Hello", CLOSE), [*system("It is 09:4", "2", "."), *second("Hello")]
    ),
    3,
    "system",
    "clock",
)
case(
    "a date in the system prompt",
    chat(
        [*system("Today: 2026-11-", "29"), *FIRST],
        ("Hello", CLOSE),
        [*system("Today: 2026-11-", "30"), *second("Hello")],
    ),
    3,
    "system",
    "clock",
)
case(
    "a number that is no time",
    chat([*system("Say ", "1", " word"), *FIRST], ("Hello", CLOSE), [*system("Say ", "2", " word"), *second("Hello")]),
    3,
    "system",
    "system",
)
case("other tokens", chat(FIRST, ("Hel", "lo", CLOSE), second("Hello")), 7, "answer", "retokenised")
case("trimmed", chat(FIRST, (" \n", "Hello", " you", CLOSE), second("Hello", " you")), 7, "answer", "spacing")
case(
    "a stop string",
    chat(FIRST, ("Hello", " EN", "D", "!"), second("Hello", " "), reason="stop_string", text="Hello "),
    8,
    "answer",
    "stop_string",
)
case("a mark", chat(FIRST, ("Hello", OPEN, "you", CLOSE), second("Hello", "you")), 8, "answer", "mark")
case("another text", chat(FIRST, ("Hello", "you", CLOSE), second("Hello", "me")), 8, "answer", "rewritten")
case(
    "a message before",
    chat(FIRST, ("Hello", CLOSE), [*asked("Ho"), *answered("Hello"), *MORE, *GO]),
    2,
    "history",
    "rewritten",
)


@pytest.mark.parametrize("name", CASES)
def test_the_first_pair_that_differs_and_its_cause(name: str) -> None:
    trace, position, place, why = CASES[name]
    found = cause.select(trace, 1)
    assert found is not None
    assert (found.position, found.place, found.cause) == (position, place, why)
    rendered, before = trace.rendered(1), trace.rendered(0)
    assert rendered is not None
    assert before is not None
    held = [*before.token_bytes, *(step.token_bytes for step in trace.steps(0))]
    assert found.new_id == rendered.token_ids[position]
    assert found.old.startswith(held[position])
    assert found.new.startswith(rendered.token_bytes[position])
    assert found.shared == b"".join(held[max(0, position - 6) : position])


def test_only_a_difference_of_the_selected_turn_leads_to_its_position() -> None:
    trace, position, *_ = CASES["trimmed"]
    assert read(turns.render(make_view(trace, turn=1))[2])["keys"] == [{"position": position}]
    assert "position" not in str(read(turns.render(make_view(trace, turn=0))[2]).get("keys"))


def test_half_a_character_is_told_from_other_tokens() -> None:
    trace = chat(FIRST, ("Hello", "x", CLOSE), second("Hello", "\ufffd"), text="Hello\ufffd")
    events = [
        dataclasses.replace(event, token_bytes=b"\xe2\x91")
        if event.kind == "stepped" and event.token_bytes == b"x"
        else event
        for event in trace.events
    ]
    found = cause.select(dataclasses.replace(trace, events=tuple(events)), 1)
    assert found is not None
    assert found.cause == "bytes"


def test_a_policy_that_left_messages_out_is_the_cause() -> None:
    trace = CASES["a message before"][0]
    left_out = Truncated(1, "drop_oldest", 60, (1, 2), (0,), (), 70, 58, 0, "none", None, 8, 2, 56)
    found = cause.select(dataclasses.replace(trace, events=(*trace.events, left_out)), 1)
    assert found is not None
    assert found.cause == "policy"


def test_where_a_window_has_slid_the_texts_are_lined_up_by_their_ids() -> None:
    # Two tokens have left at the front: the new context begins with the third that was fed.
    trace = chat([*asked("Hi"), *GO], ("Hello", "you", CLOSE), [(U, 0, "content", ("Hi", CLOSE, "\n")), *GO])
    rendered = trace.rendered(1)
    assert rendered is not None
    moved = dataclasses.replace(
        rendered,
        token_ids=np.array([*rendered.token_ids, token_id("Hello"), token_id("me")], np.int32),
        token_bytes=(*rendered.token_bytes, b"Hello", b"me"),
        span_index=np.array([*rendered.span_index, 0, 0], np.int32),
        parted=Parted(6, token_id("you"), token_id("me")),
    )
    events = [moved if event is rendered else event for event in trace.events]
    found = cause.select(dataclasses.replace(trace, events=tuple(events)), 1)
    assert found is not None
    assert (found.position, found.shared[-5:], found.old, found.new) == (6, b"Hello", b"you", b"me")


def test_a_history_that_only_grows_has_no_difference() -> None:
    assert cause.select(grown(), 1) is None
    assert cause.select(grown(), 0) is None
    row = read(turns.render(make_view(grown(), turn=1))[2])["rows"][0]
    assert row[-1].startswith("Nothing differs")


def test_a_cache_that_was_given_back_or_could_not_be_cut_says_so() -> None:
    trace = CASES["another text"][0]
    rendered = trace.rendered(1)
    assert rendered is not None

    def shown(**fields: Any) -> str:
        events = [dataclasses.replace(e, **fields) if e is rendered else e for e in trace.events]
        view = make_view(dataclasses.replace(trace, events=tuple(events)), turn=1)
        return str(read(turns.render(view)[2])["rows"][0][-1])

    assert "given back" in shown(cached=0, reused=0, parted=None)
    context = len(rendered.token_ids)
    assert "is the beginning of what was cached" in shown(cached=context, reused=context - 1, parted=None)
    same = shown(cached=context, reused=0, parted=None, refused="layer 0 has no way back")
    assert same.endswith("is the beginning of what was cached. Nothing could be kept: layer 0 has no way back.")
    assert "Nothing could be kept: layer 0 has no way back." in shown(reused=0, refused="layer 0 has no way back")
