"""A run under a strategy: what it keeps, what it costs, and that it is the run of the messages that stay."""

from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from engine.context.fit import newest
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.stages.template import render, render_raw
from engine.stages.tokens import tokenise
from engine.trace import Rendered, Stopped
from tests.engine.context.chats import CHAT, cut, run, said, tokens
from tests.engine.conversations import experiment, finish, ids, told
from tests.engine.models import tiny
from tests.engine.stages.texts import fallback_tokenizer

STAYS = {
    "drop_oldest": (5, 6, 7),
    "keep_system": (0, 5, 6, 7),
    "drop_middle": (0, 1, 2, 7),
}


def picked(*indices: int) -> list[dict[str, str]]:
    return [CHAT[index] for index in indices]


@pytest.mark.parametrize("strategy", STAYS)
def test_the_run_is_that_of_the_messages_that_stay(strategy: str) -> None:
    stays = STAYS[strategy]
    trace = run(strategy, tokens(picked(*stays)))
    found = cut(trace)
    assert found.kept == stays
    assert found.dropped == tuple(index for index in range(8) if index not in stays)
    alone = run("none", None, messages=picked(*stays))
    assert trace.rendered(0).token_ids.tolist() == alone.rendered(0).token_ids.tolist()  # type: ignore[union-attr]
    assert ids(trace) == ids(alone)
    assert [step.draw.u for step in trace.steps(0)] == [step.draw.u for step in alone.steps(0)]  # type: ignore[union-attr]


@pytest.mark.parametrize("strategy", STAYS)
def test_one_token_less_and_the_next_exchange_leaves_too(strategy: str) -> None:
    fits = tokens(picked(*STAYS[strategy]))
    assert cut(run(strategy, fits - 1)).dropped > cut(run(strategy, fits)).dropped or strategy == "drop_middle"
    assert len(cut(run(strategy, fits - 1)).kept) < len(STAYS[strategy])


@pytest.mark.parametrize("strategy", [*STAYS, "summary", "sliding_window"])
def test_nothing_is_told_where_all_fits(strategy: str) -> None:
    limit = tokens(CHAT) + (5 if strategy == "sliding_window" else 0)  # a window holds the answer too
    trace = run(strategy, limit)
    assert trace.truncated(0) is None
    assert told(trace.events) == told(run("none", None).events)


def test_each_message_s_tokens_are_those_of_the_whole_history() -> None:
    found = cut(run("keep_system", 80))
    assert found.before == tokens(CHAT) == sum(portion.tokens for portion in found.portions)
    for portion, message in zip(found.portions, [*CHAT, None], strict=True):
        if message is None:
            assert (portion.role, portion.message) == ("assistant", None)  # the generation prompt
        else:
            alone = tiny("llama").tokenizer.apply_chat_template([message])["input_ids"]
            assert (portion.role, portion.tokens) == (message["role"], len(alone))
        assert portion.kept in (0, portion.tokens)
    assert found.after == sum(portion.kept for portion in found.portions) <= found.limit == 80


def test_spans_name_messages_by_their_place_in_the_whole_history() -> None:
    rendered = run("drop_middle", tokens(picked(*STAYS["drop_middle"]))).rendered(0)
    assert rendered is not None
    assert list(dict.fromkeys(span.message for span in rendered.spans)) == [0, 1, 2, 7, None]
    texts = {span.message: rendered.text[span.start : span.end] for span in rendered.spans if span.kind == "content"}
    assert texts == {index: CHAT[index]["content"] for index in STAYS["drop_middle"]}


@pytest.mark.parametrize("strategy", [*STAYS, "summary"])
def test_a_message_over_the_limit_is_refused_with_both_numbers(strategy: str) -> None:
    trace = run(strategy, 12)
    stopped = trace.events[-1]
    assert isinstance(stopped, Stopped)
    assert stopped.reason == "error"
    least = tokens(picked(7) if strategy == "drop_oldest" else picked(0, 7))
    if strategy != "summary":
        assert f"{least} tokens" in stopped.evidence["message"]
    assert "context.max_tokens holds 12" in stopped.evidence["message"]
    assert isinstance(trace.events[0], Rendered)  # the whole history, to be looked at


def test_one_message_alone_is_refused_too() -> None:
    stopped = run("drop_oldest", 5, messages=said("u the cat")).events[-1]
    assert isinstance(stopped, Stopped)
    assert f"the newest message takes {tokens(said('u the cat'))} tokens" in stopped.evidence["message"]


def raw(tokenizer: PreTrainedTokenizerFast, text: str) -> Rendered:
    spans = render_raw(text).spans
    found = tokenise(tokenizer, text, spans, templated=False, obey_marks=False)
    fields = (found.ids, found.span_index, found.pieces, found.token_bytes, found.special)
    return Rendered(0, text, spans, *fields, marks_in_content=0, reused=0, parted=None)


@pytest.mark.parametrize("text", ["The capital is in", " the capital 中 is"])
def test_what_the_tokenizer_put_in_shifts_no_text_of_a_window(text: str) -> None:
    """A BOS and a space before the first word."""
    whole = raw(fallback_tokenizer(), text)
    assert (whole.token_bytes[0], b"".join(whole.token_bytes[1:]).decode()) == (b"<s>", f" {text}")
    assert newest(whole, 1).text == text
    for first in range(2, len(whole.token_ids)):
        assert newest(whole, first).text == b"".join(whole.token_bytes[first:]).decode("utf-8", "ignore")


ALTERNATING = (
    "{%- for message in messages -%}{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{ raise_exception('roles must alternate') }}{%- endif -%}"
    "{{- '<|im_start|>' + message['content'] + '<|im_end|>' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>' -}}{%- endif -%}"
)


@pytest.mark.parametrize("limit", range(8, 64, 4))
@pytest.mark.parametrize("strategy", [*STAYS, "summary"])
def test_a_template_that_demands_alternation_gets_it(
    strategy: str, limit: int, llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama.tokenizer, "chat_template", ALTERNATING)
    trace = run(strategy, limit, messages=CHAT[1:], stop={"max_new_tokens": 1})
    stopped = trace.events[-1]
    assert isinstance(stopped, Stopped)
    assert "alternate" not in str(stopped.evidence)


def test_a_tool_s_result_never_stays_without_its_call() -> None:
    chat = said("u one", "a call", "t result", "a two", "u three", "a call", "t result")
    for limit in range(20, tokens(chat)):
        trace = run("drop_oldest", limit, messages=chat, stop={"max_new_tokens": 1})
        if trace.truncated(0) is not None:
            assert cut(trace).kept == (4, 5, 6)


DEFAULT = (
    "{%- if messages[0]['role'] != 'system' -%}"
    r"{{- '<|im_start|>system\nyou are kind<|im_end|>\n' -}}{%- endif -%}"
)


@pytest.mark.parametrize(
    ("strategy", "limit", "default", "messages", "fate"),
    [
        ("drop_oldest", 60, "", CHAT, "dropped"),
        ("drop_oldest", 60, DEFAULT, CHAT, "replaced"),
        ("keep_system", 60, "", CHAT, "kept"),
        ("keep_system", 60, DEFAULT, CHAT[1:], "kept"),
        ("drop_oldest", 60, "", CHAT[1:], "none"),
        ("sliding_window", 60, "", CHAT, "dropped"),
        ("sliding_window", tokens(CHAT) - 5, "", CHAT, "cut"),
    ],
)
def test_the_system_prompt_s_fate(
    strategy: str,
    limit: int,
    default: str,
    messages: Any,
    fate: str,
    llama: LoadedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(llama.tokenizer, "chat_template", default + str(llama.tokenizer.chat_template))
    assert cut(run(strategy, limit, messages=messages)).system == fate


@pytest.mark.parametrize("strategy", [*STAYS, "summary", "sliding_window"])
def test_the_same_experiment_gives_the_same_trace_over_turns(strategy: str) -> None:
    fields: dict[str, Any] = {"messages": CHAT[:2], "follow_ups": [text["content"] for text in CHAT[3::2]] * 2}
    first, second = (run(strategy, 160 if strategy == "summary" else 85, **fields) for _ in range(2))
    assert first.turns == 7
    assert told(first.events) == told(second.events)
    cuts = [(first.truncated(turn), second.truncated(turn)) for turn in range(7)]
    assert cuts[-1][0] is not None
    for one, other in cuts:
        assert (one and vars(one)) == (other and vars(other))


def test_what_the_cache_is_good_for_is_told() -> None:
    fields: dict[str, Any] = {"messages": CHAT[:2], "follow_ups": [text["content"] for text in CHAT[3::2]]}
    trace = run("keep_system", 85, **fields)
    turn = next(turn for turn in range(4) if trace.truncated(turn))
    found, rendered, before = cut(trace, turn), trace.rendered(turn), trace.steps(turn - 1)[-1]
    assert rendered is not None
    assert found.cached == before.kv_tokens
    assert found.reused == rendered.reused
    # The system prompt and the opening mark of the next message are the same; then another message comes.
    system = found.portions[0].tokens
    assert system < found.reused < system + 8
    assert found.computed == found.after - found.reused
    assert trace.prefilled(turn).first == found.reused  # type: ignore[union-attr]


def test_a_strategy_needs_a_limit_and_messages() -> None:
    with pytest.raises(ValueError, match="'drop_oldest' needs 'max_tokens'"):
        experiment(context={"strategy": "drop_oldest"})
    with pytest.raises(ValueError, match="needs 'messages'"):
        experiment(prompt="the", context={"strategy": "summary", "max_tokens": 9})
    with pytest.raises(ValueError, match="cannot be watched"):
        experiment(mistake="mask_not_extended", context={"strategy": "sliding_window", "max_tokens": 9})


def test_the_limit_is_the_prompt_s_and_the_answer_goes_on(llama: LoadedModel) -> None:
    messages = picked(0, 7)
    trace = run("keep_system", tokens(messages), messages=messages, stop={"max_new_tokens": 5})
    assert len(trace.steps(0)) == 5
    none = run("none", tokens(messages) + 2, messages=messages, stop={"max_new_tokens": 5})
    assert none.stopped(0).evidence["limit"] == "context"  # type: ignore[union-attr]


def test_a_refused_turn_ends_the_run_and_the_next_experiment_runs(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(messages=CHAT, context={"strategy": "keep_system", "max_tokens": 12}))
    finish(talk)
    with pytest.raises(ExperimentError, match="start anew"):
        talk.say("again")


def test_render_is_still_the_template_s_own(llama: LoadedModel) -> None:
    rendered = run("drop_oldest", 60).rendered(0)
    kept = [message for index, message in enumerate(CHAT) if index in cut(run("drop_oldest", 60)).kept]
    assert rendered is not None
    messages = experiment(messages=kept).messages
    assert messages is not None
    assert rendered.text == render(llama.tokenizer, messages).text
