"""What the panel of ends says where several hold at one token, and where text was held back to the end."""

import dataclasses

import pytest

from components.panel import Cursor, View
from components.stopping import panel as stopping
from components.stopping.byte_buffer import completed
from components.stopping.reasons import reasons
from components.stopping.text import buffer_table
from components.widgets.host import read
from engine.conversation import Conversation
from engine.trace import Trace
from tests.components.handmade import make_facts, make_step
from tests.engine.callers import SUM, caller
from tests.engine.callers import experiment as calling
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny, tiny_tokenizer


def saying(text: str, **fields: object) -> Trace:
    ids = tiny_tokenizer().encode(text, add_special_tokens=False)
    forced = [{"turn": 0, "step": step, "token_id": token_id} for step, token_id in enumerate(ids)]
    stop = {"max_new_tokens": len(ids)} | fields.pop("stop", {})  # type: ignore[operator]
    return finish(Conversation(tiny("llama"), experiment(forced=forced, stop=stop, **fields)))


def view_of(trace: Trace, position: int | None = None) -> View:
    return View(trace.facts, trace, Cursor(position=position))


def also(trace: Trace, name: str) -> str:
    (found,) = [one for one in reasons(view_of(trace)) if one.name == name]
    assert found.state == "also"
    return found.evidence


def test_a_stop_string_that_the_last_token_allowed_completes_is_said_to_have_appeared() -> None:
    trace = saying("abXY", stop={"stop_strings": ["Z", "XY"]})
    assert trace.stopped(0).reason == "length"  # type: ignore[union-attr]
    assert also(trace, "stop_string").startswith("“XY” begins in the token “X” of step 2 and ends in “Y” of step 3")


def test_an_end_token_that_is_the_last_one_allowed_is_said_to_be_one() -> None:
    trace = saying("ab<|im_end|>")
    assert also(trace, "eos") == "“<|im_end|>” (id 2) is an end-of-sequence token and was taken at step 2"


def test_a_grammar_that_the_last_token_allowed_completes_is_said_to_be_complete() -> None:
    grammar = {"kind": "regex", "source": "ab"}
    trace = finish(Conversation(tiny("llama"), experiment(grammar=grammar, stop={"max_new_tokens": 2})))
    assert also(trace, "grammar_end").startswith("“b” (id 68) at step 1 completed the grammar")


def test_a_limit_that_is_reached_with_a_call_has_its_number() -> None:
    count = len(tiny_tokenizer().encode(SUM, add_special_tokens=False))
    conversation = Conversation(caller(), calling([SUM], end=False, stop={"max_new_tokens": count}))
    while conversation.advance()[-1].kind != "stopped":
        pass
    assert conversation.trace.stopped(0).reason == "tool_call"  # type: ignore[union-attr]
    assert also(conversation.trace, "length") == f"the limit of {count} new tokens is reached"


@pytest.mark.parametrize(
    ("stops", "first"), [(["sat", "cat"], "cat"), (["at", "cat"], "cat"), (["dog", "sat"], "sat"), (["he", "at"], "at")]
)
def test_of_several_stop_strings_the_first_to_be_complete_is_named(stops: list[str], first: str) -> None:
    base = make_step(0, 21, 15, make_facts())
    steps = tuple(dataclasses.replace(base, step=i, token_bytes=data) for i, data in enumerate((b"the ", b"cat sat")))
    assert completed(steps, stops) == first


def test_what_was_held_to_the_end_is_said_to_have_been_released() -> None:
    trace = saying("abXY", stop={"stop_strings": ["XYZ"]})
    view = view_of(trace)
    text = stopping.stations(view)[1]
    assert (text.result, text.note) == ("abXY", "2 bytes held, then released")
    (row,) = [one for one in reasons(view) if one.name == "stop_string"]
    assert row.evidence == "none of “XYZ” has appeared; 2 bytes were held back to the end, and then released"
    assert read(buffer_table(view))["caption"].endswith("so what was still held was released: “XY”.")
    earlier = view_of(trace, trace.steps(0)[2].position)
    assert (stopping.stations(earlier)[1].result, stopping.stations(earlier)[1].note) == ("ab", "1 byte held")


@pytest.mark.parametrize(("said", "shown"), [("XY", "XY"), ("中", "�")])
def test_an_answer_that_shows_at_its_end_only_is_not_said_to_have_no_visible_character(said: str, shown: str) -> None:
    pieces = tiny_tokenizer().encode(said, add_special_tokens=False)[:2]
    forced = [{"turn": 0, "step": step, "token_id": token_id} for step, token_id in enumerate(pieces)]
    stop = {"max_new_tokens": 2, "stop_strings": ["XYZ"]}
    trace = finish(Conversation(tiny("llama"), experiment(forced=forced, stop=stop)))
    assert trace.answer(0) == shown
    caption = read(buffer_table(view_of(trace)))["caption"]
    assert caption.startswith("No token put a visible character on the page. The turn ended, so")
    assert stopping.stations(view_of(trace))[1].result == shown
