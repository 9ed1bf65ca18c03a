"""A sliding window against forwards by hand: evicting keys is masking their columns; starting again is a cold run."""

import itertools
from typing import Any

import pytest
import torch
from transformers import DynamicCache

from engine.context.window import rows_of
from engine.conversation import Conversation
from engine.model import LoadedModel
from engine.trace import Rendered, Stopped, Trace
from tests.engine.context.chats import CHAT, cut, run, tokens
from tests.engine.conversations import experiment, finish, ids, told
from tests.engine.models import tiny

SIZE = 40
CLOSE = {"atol": 2e-4, "rtol": 0.0}  # measured: under 2e-5 on these models


def talk(model: str = "llama", size: int = SIZE, *, positions: str = "go_on", **fields: Any) -> Conversation:
    context = {"strategy": "sliding_window", "max_tokens": size, "positions": positions}
    return Conversation(tiny(model), experiment(**{"messages": CHAT} | fields, context=context))


def logits_by_hand(loaded: LoadedModel, token_ids: list[int], sees_from: list[int], first: int = 0) -> torch.Tensor:
    """Logits [n, vocab] of one plain forward, no cache, each row under its own mask."""
    n = len(token_ids)
    mask = torch.zeros(n, n, dtype=torch.bool)
    for row, begin in enumerate(sees_from):
        mask[row, begin - first : row + 1] = True
    with torch.inference_mode():
        output = loaded.model(
            input_ids=torch.tensor([token_ids]),
            attention_mask=mask[None, None],
            position_ids=torch.arange(first, first + n)[None],
            use_cache=False,
        )
    return output.logits[0].float()


def assert_same_logits(trace: Trace, turn: int, rows: torch.Tensor, **tolerance: float) -> None:
    for step, row in zip(trace.steps(turn), rows, strict=True):
        torch.testing.assert_close(torch.from_numpy(step.logits[0]), row[step.candidate_ids.tolist()], **tolerance)


@pytest.mark.parametrize("model", ["llama", "qwen3", "gpt2"])
def test_going_on_is_masking_the_columns_of_what_left(model: str) -> None:
    trace = finish(talk(model, stop={"max_new_tokens": 12}))
    loaded, found, steps = tiny(model), cut(trace), trace.steps(0)
    whole = loaded.tokenizer.apply_chat_template(CHAT, add_generation_prompt=True)["input_ids"]
    assert trace.rendered(0).token_ids.tolist() == whole[-SIZE:]  # type: ignore[union-attr]
    assert found.offset == len(whole) - SIZE
    fed = [*whole[-SIZE:], *(step.token_id for step in steps[:-1])]
    # The prompt sees itself; each token of the answer sees itself and the 39 before it.
    sees = [found.offset] * SIZE + [found.offset + k for k in range(1, len(steps))]
    rows = logits_by_hand(loaded, fed, sees, found.offset)[SIZE - 1 :]
    assert_same_logits(trace, 0, rows, **CLOSE)
    assert {step.kv_tokens for step in steps} == {SIZE}


def test_a_second_turn_goes_on_with_keys_that_saw_what_has_left() -> None:
    loaded = tiny("llama")
    answer = [*loaded.tokenizer.encode("it sat there", add_special_tokens=False), loaded.facts.eos_ids[0]]
    forced = [{"turn": turn, "step": step, "token_id": token} for turn in range(3) for step, token in enumerate(answer)]
    trace = finish(talk(follow_ups=["the mat", "the dog sat"], forced=forced, stop={"max_new_tokens": 8}))
    assert trace.turns == 3
    assert [cut(trace, turn).reused > 8 for turn in range(3)] == [False, True, True]
    for turn in range(3):
        rendered, found = trace.rendered(turn), cut(trace, turn)
        assert rendered is not None
        history = _history(trace, turn)
        fed = [*history, *(step.token_id for step in trace.steps(turn)[:-1])]
        sees = rows_of(trace, turn)[: len(fed)]
        begin = cut(trace, 0).offset
        rows = logits_by_hand(tiny("llama"), fed[begin:], sees[begin:], begin)
        assert_same_logits(trace, turn, rows[len(history) - begin - 1 :], **CLOSE)
        # Other than if only what is in the window had been computed: the keys carry more.
        if turn:
            own = fed[found.offset :]
            fresh = [max(found.offset, row) for row in sees[found.offset :]]
            alone = logits_by_hand(tiny("llama"), own, fresh, found.offset)[len(rendered.token_ids) - 1 :]
            assert (alone[0] - rows[len(history) - begin - 1]).abs().max() > 100 * CLOSE["atol"]


def _history(trace: Trace, turn: int) -> list[int]:
    """The ids of the whole history that a turn answers, by transformers."""
    messages = list(CHAT)
    for former, text in enumerate(trace.experiment.follow_ups[:turn]):
        messages += [{"role": "assistant", "content": trace.answer(former)}, {"role": "user", "content": text}]
    found: list[int] = tiny("llama").tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    return found


@pytest.mark.parametrize("model", ["llama", "gpt2", "sliding", "mixed", "hybrid"])
def test_starting_again_is_a_cold_run_of_what_stays(model: str) -> None:
    trace = finish(talk(model, positions="restart", follow_ups=["the mat"], stop={"max_new_tokens": 8}))
    loaded = tiny(model)
    for turn in range(2):
        rendered = trace.rendered(turn)
        assert rendered is not None
        assert cut(trace, turn).offset == 0
        context = [*rendered.token_ids.tolist(), *(step.token_id for step in trace.steps(turn)[:-1])]
        assert len(rendered.token_ids) == SIZE
        for step in trace.steps(turn):
            kept = context[: SIZE + step.step][-SIZE:]
            with torch.inference_mode():
                row = loaded.model(torch.tensor([kept]), use_cache=False).logits[0, -1].float()
            got = torch.from_numpy(step.logits[0])
            torch.testing.assert_close(got, row[step.candidate_ids.tolist()], **CLOSE)
    assert {step.shapes["input_ids"] for step in trace.steps(0)} == {(1, SIZE)}


def test_the_two_ways_give_other_tokens() -> None:
    greedy = {"do_sample": False}
    ways = [
        ids(finish(talk(positions=positions, sampling=greedy, stop={"max_new_tokens": 20})))
        for positions in ("go_on", "restart")
    ]
    assert ways[0] != ways[1]


def test_a_model_whose_cache_cannot_let_its_oldest_go_says_why() -> None:
    for model, why in (("mixed", "layer 0 has a window of its own, 16"), ("hybrid", "layer 0 keeps a running state")):
        rendered, stopped = finish(talk(model)).events
        assert isinstance(rendered, Rendered)  # the whole history, to be looked at
        assert isinstance(stopped, Stopped)
        assert why in stopped.evidence["message"]
        assert "'restart'" in stopped.evidence["message"]
        assert stopped.evidence["field"] == "context.positions"


def test_positions_that_go_on_end_where_the_model_ends() -> None:
    long = [{"role": "user", "content": "the cat sat on the mat " * 60}]
    stopped = run("sliding_window", SIZE, messages=long).events[-1]
    assert isinstance(stopped, Stopped)
    assert "the model has 512" in stopped.evidence["message"]
    assert len(run("sliding_window", SIZE, messages=long, positions="restart").steps(0)) == 6
    near = [{"role": "user", "content": "the" + " the" * 480}]
    assert 490 < tokens(near) < 512
    trace = run("sliding_window", SIZE, messages=near, sampling={"min_new_tokens": 30}, stop={"max_new_tokens": 30})
    assert cut(trace).before + len(trace.steps(0)) == 512
    assert trace.stopped(0).evidence["limit"] == "context"  # type: ignore[union-attr]


@pytest.mark.parametrize("positions", ["go_on", "restart"])
@pytest.mark.parametrize("size", [1, 2, 39])
def test_a_cache_given_back_at_any_time_changes_no_token(positions: str, size: int) -> None:
    fields: dict[str, Any] = {"positions": positions, "follow_ups": ["the mat", "it"], "stop": {"max_new_tokens": 9}}
    kept = finish(talk(size=size, **fields))
    released = talk(size=size, **fields)
    for count in itertools.count():
        if not released.advance():
            break
        if count % 3 == 0:
            released.release()
    if positions == "go_on":
        assert told(released.trace.events, bits=False) == told(kept.events, bits=False)
    else:  # what is reused of an empty cache is another matter
        assert ids(released.trace) == ids(kept)


def test_a_cache_that_was_built_anew_to_be_used_counts_as_cached() -> None:
    said = [
        {"turn": 0, "step": step, "token_id": one}
        for step, one in enumerate([*tiny("llama").tokenizer.encode("the cat sat"), 2])
    ]

    def second(*, release: bool) -> Rendered:
        talking = talk(forced=said, stop={"max_new_tokens": 9})
        finish(talking)
        if release:
            talking.release()
        talking.say("it")
        rendered = finish(talking).rendered(1)
        assert rendered is not None
        return rendered

    kept, released = second(release=False), second(release=True)
    assert 0 < kept.reused <= kept.cached
    assert (released.reused, released.cached, released.dropped) == (kept.reused, kept.cached, kept.dropped)


@pytest.mark.parametrize("positions", ["go_on", "restart"])
def test_going_back_and_on_again_gives_the_same(positions: str) -> None:
    straight = finish(talk(positions=positions, follow_ups=["the mat"], stop={"max_new_tokens": 9}))
    wandering = talk(positions=positions, follow_ups=["the mat"], stop={"max_new_tokens": 9})
    for events in iter(wandering.advance, ()):
        if getattr(events[0], "step", None) in (3, 7) and wandering.turn and not wandering.finished:
            again = [event for event in events if event.kind == "stepped"]
            wandering.back()
            assert told(wandering.advance()[:1], bits=False) == told(tuple(again), bits=False)
    assert told(wandering.trace.events, bits=False) == told(straight.events, bits=False)


def test_the_window_s_cache_never_grows_and_older_views_of_it_stay() -> None:
    running = talk(stop={"max_new_tokens": 200}, follow_ups=[])
    running.advance()
    assert running.turn is not None
    for _ in range(100):
        running.advance()
        cache = running.turn.cache
        assert isinstance(cache, DynamicCache)
        assert {layer.keys.shape[-2] for layer in cache.layers if layer.keys is not None} == {SIZE}
    assert running.trace.truncated(0) is not None


def test_a_raw_prompt_slides_too() -> None:
    trace = run("sliding_window", 6, messages=None, prompt="the cat sat on the mat and then the dog")
    found = cut(trace)
    assert (found.after, found.system, found.kept) == (6, "none", (0,))
    whole = tiny("llama").tokenizer("the cat sat on the mat and then the dog")["input_ids"]
    assert trace.rendered(0).token_ids.tolist() == whole[-6:]  # type: ignore[union-attr]


def test_the_text_and_its_spans_are_those_of_the_tokens_that_stay() -> None:
    loaded = tiny("llama")
    for size in range(1, tokens(CHAT), 3):
        rendered = run("sliding_window", size, stop={"max_new_tokens": 1}).rendered(0)
        assert rendered is not None
        assert rendered.text == loaded.tokenizer.decode(rendered.token_ids.tolist())
        assert [span.start for span in rendered.spans[1:]] == [span.end for span in rendered.spans[:-1]]
        assert (rendered.spans[0].start, rendered.spans[-1].end) == (0, len(rendered.text))
        assert int(rendered.span_index.max()) == len(rendered.spans) - 1
        for index, span in enumerate(rendered.spans):
            own = rendered.token_ids[rendered.span_index == index].tolist()
            assert loaded.tokenizer.decode(own) == rendered.text[span.start : span.end]
