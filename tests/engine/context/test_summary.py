"""The model sums up what is dropped: greedily, the same each time, and what it costs is told."""

import random
from collections.abc import Callable

import pytest
import torch

from engine.context import kept
from engine.context.fit import fit
from engine.context.kept import History
from engine.context.summary import REQUEST, SUMMARY_TOKENS, greedy_ids, pair
from engine.experiment import ExperimentError, Message
from engine.history import render_turn
from engine.model import LoadedModel
from engine.trace import Rendered, Trace
from engine.truncated import Summary
from tests.engine.context.chats import CHAT, SYSTEM, cut, run, said, tokens
from tests.engine.conversations import experiment, ids
from tests.engine.models import tiny


def history(messages: list[dict[str, str]]) -> History:
    loaded = tiny("llama")
    return History(loaded, Trace(experiment(messages=messages), loaded.facts, {}), 0)


def tried_one_by_one(whole: History, dropped: list[int], most: int) -> tuple[list[int], tuple[int, ...]] | int:
    """The choice by its definition: ever fewer messages until they fit; the tokens of none where none do."""
    starts = [0, *(at for at in range(1, len(dropped)) if whole.messages[dropped[at]].role == "user"), len(dropped)]
    system, request = whole.messages[: whole.head], pair("")[:1]
    for at in starts:
        read = [whole.messages[index] for index in dropped[at:]]
        found = render_turn(whole.loaded, whole.trace, 0, [*system, *read, *request]).token_ids.tolist()
        if len(found) <= most:
            return found, tuple(dropped[:at])
    return len(found)


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


@pytest.mark.parametrize("seed", range(40))
def test_what_goes_unread_is_what_one_try_after_the_other_would_leave_out(seed: int) -> None:
    chance = random.Random(seed)
    chat = [SYSTEM] * chance.randrange(3)
    for _ in range(chance.randrange(1, 9)):
        roles = ["user", *["assistant"] * chance.randrange(3)]
        chat += [{"role": role, "content": "the cat " * chance.randrange(6)} for role in roles]
    whole = history([*chat, {"role": "user", "content": "one"}])
    dropped = list(range(whole.head, whole.head + chance.randrange(1, len(whole.messages) - whole.head + 1)))
    most = chance.randrange(20, 40 + tokens(chat))
    expected = tried_one_by_one(whole, dropped, most)
    if isinstance(expected, int):
        with pytest.raises(ExperimentError, match=f"takes {expected} tokens"):
            whole._prompt(dropped, most)
    else:
        assert whole._prompt(dropped, most) == expected


def test_a_long_history_is_rendered_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    renders = counted(monkeypatch)
    whole = history(said(*(text for _ in range(499) for text in ("u one", "a two")), "u three"))
    prompt, unread = whole._prompt(range(998), 450)
    assert 420 < len(prompt) <= 450
    assert 900 < len(unread) < 998
    assert len(renders) <= 10  # 500 ways to begin


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages each render has from now on."""
    renders: list[int] = []
    work: Callable[..., Rendered] = kept.render_turn

    def counting(loaded: LoadedModel, trace: Trace, turn: int, messages: list[Message]) -> Rendered:
        renders.append(len(messages))
        return work(loaded, trace, turn, messages)

    monkeypatch.setattr(kept, "render_turn", counting)
    return renders
