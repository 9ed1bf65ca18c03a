"""Strategies side by side: each row is the run that has that strategy, as far as its answer goes."""

import copy
from dataclasses import replace

import pytest

from engine.context.window import Window
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.given_trace import replayed
from engine.probes import policy as policies
from engine.probes.policy import ANSWER_TOKENS, COMPUTED, policy
from engine.values import Context
from tests.engine.callers import EOS, caller
from tests.engine.context.chats import CHAT, cut, run
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny

WAYS = [
    ("drop_oldest", "go_on"),
    ("keep_system", "go_on"),
    ("drop_middle", "go_on"),
    ("sliding_window", "go_on"),
    ("sliding_window", "restart"),
]


def talk(limit: int | None = 60, strategy: str = "drop_oldest", **fields: object) -> Conversation:
    context = {"strategy": strategy, "max_tokens": limit}
    fields = {"messages": CHAT, "stop": {"max_new_tokens": 4}} | fields
    return Conversation(tiny("llama"), experiment(**fields, context=context))


@pytest.mark.parametrize(("strategy", "positions"), WAYS)
def test_each_row_is_a_run_of_its_own(strategy: str, positions: str) -> None:
    conversation = talk()
    finish(conversation)
    found = policy(conversation, strategy=strategy, positions=positions)  # type: ignore[arg-type]
    alone = run(strategy, 60, positions=positions, stop={"max_new_tokens": 4})
    account = cut(alone)
    assert found.token_ids == tuple(step.token_id for step in alone.steps(0))
    assert found.answer == alone.answer(0)
    assert (found.kept, found.dropped, found.system) == (account.kept, account.dropped, account.system)
    assert (found.before, found.after, found.computed) == (account.before, account.after, account.after)
    ended = alone.stopped(0)
    assert ended is not None
    assert found.ended == (None if ended.evidence.get("limit") == "max_new_tokens" else ended.reason)


def test_everything_kept_is_the_row_to_compare_with() -> None:
    conversation = talk()
    conversation.advance()
    found = policy(conversation, strategy="none")
    alone = run("none", None, stop={"max_new_tokens": 4})
    assert found.kept == tuple(range(8))
    assert (found.dropped, found.limit, found.after) == ((), 60, found.before)
    assert found.token_ids == tuple(step.token_id for step in alone.steps(0))


def test_a_second_turn_s_row_counts_what_the_cache_would_spare() -> None:
    conversation = talk(limit=150, follow_ups=["the dog"])
    trace = finish(conversation)
    assert trace.turns == 2
    former = trace.rendered(0)
    assert former is not None
    everything = policy(conversation, strategy="none")
    # All of the turn before, up to where its answer reads back otherwise than it was sampled.
    assert len(former.token_ids) <= everything.reused <= len(former.token_ids) + 3
    assert everything.computed == everything.after - everything.reused
    rendered = trace.rendered(1)
    assert rendered is not None
    assert policy(conversation, strategy="drop_oldest").reused == rendered.reused
    assert policy(conversation, strategy="drop_oldest").token_ids == tuple(s.token_id for s in trace.steps(1))


def test_what_cannot_be_is_told_in_its_row() -> None:
    conversation = talk(limit=30, strategy="sliding_window")
    finish(conversation)
    found = policy(conversation, strategy="summary")
    assert found.refusal is not None
    assert "context.max_tokens holds 30" in found.refusal
    assert found.token_ids == ()


def test_a_raw_prompt_has_no_messages_to_drop() -> None:
    conversation = talk(strategy="sliding_window", limit=4, messages=None, prompt="the cat sat on the mat")
    conversation.advance()
    assert policy(conversation, strategy="keep_system").refusal == "a raw prompt has no messages to drop"
    assert policy(conversation, strategy="sliding_window").after == 4


def test_without_a_limit_two_thirds_of_the_history_are_tried() -> None:
    conversation = talk(limit=None, strategy="none")
    conversation.advance()
    found = policy(conversation, strategy="keep_system")
    assert found.limit == found.before * 2 // 3
    assert 0 < found.after <= found.limit


def test_an_answer_is_no_longer_than_a_glance_needs() -> None:
    conversation = talk(stop={"max_new_tokens": 100}, sampling={"min_new_tokens": 50})
    conversation.advance()
    found = policy(conversation, strategy="keep_system")
    assert (len(found.token_ids), found.ended) == (ANSWER_TOKENS, None)


def test_a_long_window_that_starts_again_makes_fewer_tokens() -> None:
    chat = [{"role": "user", "content": "the cat sat on the mat " * 50}]
    conversation = talk(limit=300, messages=chat, stop={"max_new_tokens": 100}, sampling={"min_new_tokens": 50})
    conversation.advance()
    found = policy(conversation, strategy="sliding_window", positions="restart")
    assert (found.after, len(found.token_ids)) == (300, COMPUTED // 300)


def test_a_cache_beyond_the_budget_is_refused_in_its_row() -> None:
    loaded = tiny("llama")
    value = talk().experiment
    conversation = Conversation(loaded, value, cache_budget=loaded.facts.kv_bytes(70))
    conversation.advance()
    assert "bytes" in str(policy(conversation, strategy="none").refusal)
    assert policy(conversation, strategy="drop_oldest").refusal is None


def test_a_recorded_trace_knows_the_random_numbers_of_its_first_turn_alone() -> None:
    conversation = talk(limit=150, follow_ups=["the dog"])
    trace = finish(conversation)
    again = replayed(conversation.loaded, trace)
    assert "random numbers" in str(policy(again, strategy="drop_oldest").refusal)
    first = finish(talk(limit=60))
    row = policy(replayed(conversation.loaded, first), strategy="drop_oldest")
    assert row.token_ids == tuple(step.token_id for step in first.steps(0))


def test_the_run_stays_as_it_is() -> None:
    conversation, straight = talk(), finish(talk())
    for _ in range(3):
        conversation.advance()
    for strategy, positions in (*WAYS, ("summary", "go_on")):
        policy(conversation, strategy=strategy, positions=positions)  # type: ignore[arg-type]
    trace = finish(conversation)
    assert [step.token_id for step in trace.steps(0)] == [step.token_id for step in straight.steps(0)]
    assert trace.experiment == straight.experiment


def test_before_the_first_turn_there_is_nothing_to_compare() -> None:
    with pytest.raises(ExperimentError, match="nothing was rendered yet"):
        policy(talk(), strategy="none")


def test_a_row_is_forced_to_call_where_the_run_is() -> None:
    conversation = Conversation(
        caller(), experiment(tools=["calculator"], tool_choice="required", stop={"max_new_tokens": 12})
    )
    while len(conversation.trace.steps(0)) < 12:
        conversation.advance()
    found = policy(conversation, strategy="none")
    assert found.token_ids == tuple(step.token_id for step in conversation.trace.steps(0))


LONG = "the cat sat on the mat and then the dog sat there too; one two three four five six seven eight nine ten"

#: Of the run that the rows are asked of: its model, its context, and the answer that it is made to give.
STATES = [
    ("llama", {}, "one two"),
    ("llama", {"strategy": "keep_system", "max_tokens": 90}, "one two"),
    ("llama", {"strategy": "sliding_window", "max_tokens": 40}, LONG),
    ("llama", {"strategy": "sliding_window", "max_tokens": 120}, "one two"),
    ("llama", {"strategy": "sliding_window", "max_tokens": 40, "positions": "restart"}, LONG),
    ("llama", {"strategy": "sliding_window", "max_tokens": 120, "positions": "restart"}, "one two"),
    ("sliding", {}, "one two"),
    ("sliding", {"strategy": "keep_system", "max_tokens": 60}, LONG),
    ("hybrid", {"strategy": "keep_system", "max_tokens": 60}, LONG),
    ("hybrid", {}, "one two"),
]


@pytest.mark.parametrize(("model", "context", "answer"), STATES)
def test_what_is_spared_is_what_a_run_finds_in_the_cache(
    model: str, context: dict[str, object], answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "ANSWER_TOKENS", 1)
    stands = after_one_turn(model, context, answer)
    asked = twin(stands)
    asked.advance()
    for strategy, positions in (("none", "go_on"), *WAYS, ("summary", "go_on")):
        row = policy(asked, strategy=strategy, positions=positions)  # type: ignore[arg-type]
        limit = None if strategy == "none" else row.limit
        other = Context(strategy=strategy, max_tokens=limit, positions=positions)  # type: ignore[arg-type]
        real = twin(stands)
        former = real.turn
        assert former is not None
        if former.window is None:
            former.window = Window(real.loaded.facts.context, False)  # the same as none: nothing has left it
        real.trace = replace(real.trace, experiment=real.experiment.model_copy(update={"context": other}))
        # Keys that stand at positions from 0 on are of no use to a window that goes on, whatever their ids.
        turned = former.window.restart and former.kv_tokens < former.fed and (strategy, positions) == WAYS[3]
        real.advance()
        rendered = real.trace.rendered(1)
        assert rendered is not None
        assert (row.refusal is None) == (real.trace.prefilled(1) is not None)
        if row.refusal is None:
            assert (row.after, row.reused) == (len(rendered.token_ids), 0 if turned else rendered.reused), strategy


def after_one_turn(model: str, context: dict[str, object], answer: str) -> Conversation:
    loaded = tiny(model)
    forced = [*loaded.tokenizer.encode(answer, add_special_tokens=False), EOS]
    conversation = Conversation(
        loaded,
        experiment(
            context=context,
            stop={"max_new_tokens": 80},
            forced=[{"turn": 0, "step": step, "token_id": token_id} for step, token_id in enumerate(forced)],
        ),
    )
    finish(conversation)
    conversation.say("the dog sat")
    return conversation


def twin(conversation: Conversation) -> Conversation:
    """The same once more, with a cache that holds the same: no second run is needed for what comes."""
    made = Conversation.resumed(conversation.loaded, conversation.trace)
    assert made.turn is not None
    assert conversation.turn is not None
    assert conversation.turn.cache is not None
    made.turn.gone = conversation.turn.gone
    made.turn.cache = copy.deepcopy(conversation.turn.cache)
    return made


def test_a_cache_that_was_given_back_spares_nothing() -> None:
    conversation = after_one_turn("llama", {}, "one two")
    conversation.release()
    conversation.advance()
    assert [policy(conversation, strategy=way).reused for way in ("none", "drop_oldest")] == [0, 0]  # type: ignore[arg-type]
