"""Turns that call tools, stopped, taken back and gone on with in the midst of a round."""

import weakref
from typing import Any

import pytest

from engine.conversation import Conversation
from engine.dialogue import messages_of
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.probes.cold_turn import cold_turn
from engine.tools.rounds import MAX_ROUNDS
from engine.trace import Rendered, ToolCalled
from tests.engine import conversations
from tests.engine.callers import EOS, SUM, caller, experiment, reasons, results, run
from tests.engine.conversations import finish, ids, told
from tests.engine.models import tiny_tokenizer


@pytest.fixture(scope="module")
def llama() -> LoadedModel:
    return caller()


def upto(conversation: Conversation, kind: str) -> None:
    while conversation.advance()[-1].kind != kind:
        pass


@pytest.mark.parametrize("at", ["stopped", "tool_called"])
def test_a_run_cancelled_in_a_round_goes_on(llama: LoadedModel, at: str) -> None:
    asked = experiment([SUM, "5"])
    conversation = Conversation(llama, asked)
    upto(conversation, at)
    conversation.cancel()
    stopped = conversation.trace.stopped(0)
    assert stopped is not None
    assert stopped.reason == "cancelled"
    assert conversation.finished
    assert told(finish(conversation).events) == told(finish(Conversation(llama, asked)).events)


@pytest.mark.parametrize("at", ["stopped", "tool_called"])
def test_after_a_cancelled_round_a_message_may_be_sent(llama: LoadedModel, at: str) -> None:
    conversation = Conversation(llama, experiment([SUM]))
    upto(conversation, at)
    conversation.cancel()
    conversation.say("Never mind.")
    trace = finish(conversation)
    assert [one.role for one in messages_of(trace, 2)] == ["user", "assistant", "tool", "assistant", "user"]
    assert trace.answer(1) == ""
    assert told(trace.events) == told(finish(Conversation(llama, trace.experiment)).events)


@pytest.mark.parametrize("after", ["", " ", "\n<tool", " so it is"])
def test_a_message_after_a_call_that_was_stopped_before_its_end_is_answered_next(
    llama: LoadedModel, after: str
) -> None:
    asked = experiment([SUM + after, "5"], end=False, stop={"max_new_tokens": 120})
    conversation = Conversation(llama, asked)
    while conversation.trace.stopped(0) is None and len(conversation.trace.steps(0)) < len(
        tiny_tokenizer().encode(SUM + after, add_special_tokens=False)
    ):
        conversation.advance()
    assert SUM in conversation.trace.answer(0)
    conversation.cancel()
    conversation.say("Never mind.")
    trace = finish(conversation)
    assert reasons(trace)[:2] == ["tool_call", "eos"]
    assert results(trace)[0] == "2+3 = 5"
    assert trace.answer(1) == ""
    assert [one.role for one in messages_of(trace, 2)] == ["user", "assistant", "tool", "assistant", "user"]
    assert messages_of(trace, 2)[-1].content == "Never mind."
    assert told(trace.events) == told(finish(Conversation(llama, trace.experiment)).events)


@pytest.mark.parametrize("fields", [{"tool_choice": "none"}, {"tools": []}])
def test_a_call_that_nobody_runs_is_text_when_it_is_stopped(llama: LoadedModel, fields: dict[str, Any]) -> None:
    conversation = Conversation(llama, experiment([SUM], end=False, **fields))
    while conversation.trace.answer(0) != SUM:
        conversation.advance()
    conversation.cancel()
    conversation.say("Never mind.")
    assert [(item.turn, item.step) for item in conversation.experiment.forced if item.token_id == EOS] == [
        (0, len(conversation.trace.steps(0)))
    ]
    finish(conversation)
    assert messages_of(conversation.trace, 1)[-1].content == "Never mind."


def test_after_the_last_round_a_stopped_call_leaves_the_answer_to_the_message_alone(llama: LoadedModel) -> None:
    conversation = Conversation(llama, experiment([*[SUM] * MAX_ROUNDS, SUM]))
    while conversation.trace.answer(MAX_ROUNDS) != SUM:
        conversation.advance()
    conversation.cancel()
    conversation.say("Never mind.")
    trace = finish(conversation)
    assert reasons(trace)[MAX_ROUNDS] == "tool_limit"
    assert trace.steps(MAX_ROUNDS + 1)
    assert not trace.steps(MAX_ROUNDS + 1)[0].forced


def test_a_message_waits_for_the_round_to_end(llama: LoadedModel) -> None:
    conversation = Conversation(llama, experiment([SUM, "5"]))
    upto(conversation, "tool_called")
    assert not conversation.finished
    with pytest.raises(ExperimentError, match="has not ended"):
        conversation.say("Now?")


def test_back_goes_over_a_call_token_by_token(llama: LoadedModel) -> None:
    asked = experiment([SUM, "5", ""])
    whole = finish(Conversation(llama, asked))
    conversation = Conversation(llama, asked)
    finish(conversation)
    count = len(ids(whole))
    for left in reversed(range(count)):
        assert conversation.back()
        assert len(ids(conversation.trace)) == left
    assert not conversation.back()
    assert not list(conversation.trace.of(ToolCalled))
    again = finish(conversation)
    assert ids(again) == ids(whole)
    assert results(again) == results(whole)


def test_a_run_with_calls_resumed_from_its_trace_goes_on_and_back_as_the_first_would(llama: LoadedModel) -> None:
    asked = experiment([SUM, "5"])
    whole = finish(Conversation(llama, asked))
    first, pieces = Conversation(llama, asked), 0
    while first.advance():
        pieces += 1
        resumed = Conversation.resumed(llama, first.trace)
        ended = finish(resumed)
        assert (ids(ended), results(ended), reasons(ended)) == (ids(whole), results(whole), reasons(whole))
        while resumed.back():
            pass
        assert [event.kind for event in resumed.trace.events] == ["rendered", "prefilled"]
    assert pieces > 8


def test_another_token_may_be_taken_instead_of_a_call(llama: LoadedModel) -> None:
    conversation = Conversation(llama, experiment([SUM]))
    finish(conversation)
    while len(list(conversation.trace.of(Rendered))) > 1 or conversation.trace.stopped(0):
        assert conversation.back()
    conversation.force(0, EOS)
    trace = finish(conversation)
    assert reasons(trace) == ["eos"]
    assert ids(trace) == ids(finish(Conversation(llama, trace.experiment)))


def test_a_cache_given_back_in_a_round_changes_nothing(llama: LoadedModel) -> None:
    asked = experiment([SUM, "5"])
    conversation = Conversation(llama, asked)
    upto(conversation, "tool_called")
    conversation.release()
    assert conversation.cache_bytes == 0
    assert ids(finish(conversation)) == ids(finish(Conversation(llama, asked)))


def test_results_that_do_not_fit_end_the_run_with_both_numbers(llama: LoadedModel) -> None:
    first = run(llama, [SUM]).rendered(0)
    assert first is not None
    limit = len(first.token_ids) + len(tiny_tokenizer().encode(SUM, add_special_tokens=False)) + 1
    trace = run(llama, [SUM], context={"max_tokens": limit})
    assert reasons(trace) == ["tool_call", "error"]
    stopped = trace.stopped(1)
    assert stopped is not None
    second = trace.rendered(1)
    assert second is not None
    assert f"{len(second.token_ids)} tokens, context.max_tokens holds {limit}" in stopped.evidence["message"]


def test_no_turn_of_a_released_conversation_holds_a_cache(llama: LoadedModel) -> None:
    conversation = Conversation(llama, experiment([SUM, SUM, "5"]))
    upto(conversation, "stopped")
    assert conversation.turn is not None
    first = weakref.ref(conversation.turn.cache)  # type: ignore[arg-type]
    finish(conversation)
    last = weakref.ref(conversation.turn.cache)  # type: ignore[arg-type]
    conversation.release()
    assert first() is None
    assert last() is None


def test_a_forced_call_computed_cold_is_forced_too(llama: LoadedModel) -> None:
    forced = conversations.experiment(tools=["calculator"], tool_choice="required", stop={"max_new_tokens": 30})
    conversation = Conversation(llama, forced)
    while not conversation.finished and len(conversation.trace.steps(0)) < 25:
        conversation.advance()
    found = cold_turn(conversation)
    assert len(found.ours) == 25
    assert found.first_difference is None
