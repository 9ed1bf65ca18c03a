"""The model sums up what is dropped: greedily, the same each time, and what it costs is told."""

import pytest
import torch

from engine.context.fit import fit
from engine.context.summary import REQUEST, SUMMARY_TOKENS, greedy_ids, pair
from engine.model import LoadedModel
from engine.trace import Trace
from engine.truncated import Summary
from tests.engine.context.chats import CHAT, cut, run, tokens
from tests.engine.conversations import experiment, ids
from tests.engine.models import tiny

ASK = [message.model_dump() for message in pair("")]


def summary_of(trace: Trace) -> Summary:
    found = cut(trace).summary
    assert found is not None
    return found


#: Twenty messages: the system prompt, ten questions, and answers to all but the last.
LONG = [CHAT[0], *(CHAT[1:7] * 3), CHAT[7]]
LIMIT = 200


@pytest.fixture(scope="module")
def trace() -> Trace:
    return run("summary", LIMIT, messages=LONG)


def test_it_is_what_generate_gives_greedily(architecture: LoadedModel) -> None:
    prompt = architecture.tokenizer.apply_chat_template(CHAT, add_generation_prompt=True)["input_ids"]
    theirs = architecture.model.generate(  # type: ignore[operator]
        torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), max_new_tokens=SUMMARY_TOKENS,
        do_sample=False, pad_token_id=0,
    )[0, len(prompt) :].tolist()  # fmt: skip
    ended = [token for token in theirs if token not in architecture.facts.eos_ids]
    assert greedy_ids(architecture, prompt, SUMMARY_TOKENS) == ended


def test_two_messages_take_the_place_of_those_that_left(trace: Trace) -> None:
    found, summary = cut(trace), summary_of(trace)
    assert found.kept[0] == 0
    assert found.kept[1:] == tuple(range(found.kept[1], 20))
    assert found.dropped == tuple(range(1, found.kept[1]))
    alone = run(
        "none",
        None,
        messages=[LONG[0], {"role": "user", "content": REQUEST}, {"role": "assistant", "content": summary.text}]
        + [LONG[index] for index in found.kept[1:]],
    )
    assert trace.rendered(0).token_ids.tolist() == alone.rendered(0).token_ids.tolist()  # type: ignore[union-attr]
    assert ids(trace) == ids(alone)
    named = [span.message for span in trace.rendered(0).spans]  # type: ignore[union-attr]
    assert list(dict.fromkeys(named)) == [0, 20, 21, *found.kept[1:], None]


def test_its_cost_is_told(trace: Trace) -> None:
    found, summary = cut(trace), summary_of(trace)
    asked = [*(LONG[index] for index in (0, *found.dropped)), {"role": "user", "content": REQUEST}]
    assert summary.prompt_tokens == tokens(asked)
    assert 0 < summary.tokens <= SUMMARY_TOKENS
    assert found.computed == found.after + summary.prompt_tokens + summary.tokens - 1
    assert found.after <= LIMIT


def test_it_is_the_same_each_time_and_draws_nothing(trace: Trace) -> None:
    again = run("summary", LIMIT, messages=LONG)
    assert summary_of(again) == summary_of(trace)
    other_seed = run("summary", LIMIT, messages=LONG, sampling={"temperature": 1.2, "seed": 5})
    assert summary_of(other_seed) == summary_of(trace)


def test_what_is_too_old_for_the_model_goes_unread() -> None:
    many = [CHAT[0], *(CHAT[1:7] * 15), CHAT[7]]
    assert tokens(many) > tiny("llama").facts.context
    summary = summary_of(run("summary", LIMIT, messages=many))
    assert summary.unread == tuple(range(1, 1 + len(summary.unread)))
    assert len(summary.unread) % 2 == 0
    assert 512 - SUMMARY_TOKENS - 30 < summary.prompt_tokens <= 512 - SUMMARY_TOKENS


def test_a_cache_too_small_to_ask_for_it_is_an_error() -> None:
    loaded = tiny("llama")
    context = {"strategy": "summary", "max_tokens": LIMIT}
    value = experiment(messages=LONG, context=context, stop={"max_new_tokens": 1})
    asked = tokens([LONG[0], *ASK[:1]])
    refusals = [
        fit(
            loaded, Trace(value, loaded.facts, {}), 0, cache_budget=loaded.facts.kv_bytes(room + SUMMARY_TOKENS)
        ).refusal
        for room in (asked, asked - 1)
    ]
    assert refusals[0] is None
    assert f"takes {asked} tokens, there is room for {asked - 1}" in str(refusals[1])


def test_no_room_for_it_is_an_error_with_both_numbers() -> None:
    least = tokens([CHAT[0], *ASK, CHAT[7]]) + SUMMARY_TOKENS
    fits = run("summary", least, messages=LONG)
    assert cut(fits).kept == (0, 19)
    evidence = run("summary", least - 1, messages=LONG).events[-1].evidence  # type: ignore[union-attr]
    assert f"take {least} tokens" in evidence["message"]
    assert f"holds {least - 1}" in evidence["message"]
