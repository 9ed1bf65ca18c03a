"""Turns, reuse, going back, choosing by hand, cancelling, failing: the trace is what the experiment says."""

import gc
import weakref
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import conversation as conversation_module
from engine import kv_cache
from engine.conversation import Conversation, run
from engine.experiment import Experiment, ExperimentError
from engine.model import LoadedModel
from engine.stages import forward as forward_module
from engine.trace import Event, Rendered, Stepped, Stopped, Trace
from tests.engine.models import CONTEXT, ROWS, tiny

SAMPLED = {"temperature": 1.2, "top_k": 50, "repetition_penalty": 1.1, "seed": 11}


def experiment(**fields: Any) -> Experiment:
    data = {
        "version": 1,
        "model": "tiny",
        "messages": [{"role": "user", "content": "the cat"}],
        "sampling": SAMPLED,
        "stop": {"max_new_tokens": 6},
    }
    if "prompt" in fields:
        del data["messages"]
    return Experiment.model_validate(data | fields)


def finish(conversation: Conversation) -> Trace:
    while conversation.advance():
        pass
    assert conversation.finished
    return conversation.trace


def ids(trace: Trace) -> list[tuple[int, int]]:
    return [(step.turn, step.token_id) for step in trace.of(Stepped)]


def told(events: tuple[Event, ...], *, bits: bool = True) -> list[Any]:
    """What must be the same again: everything but times (and, without `bits`, the last digits of logits)."""
    found: list[Any] = []
    for event in events:
        match event:
            case Rendered():
                found.append((event.turn, event.text, event.token_ids.tolist(), event.reused, event.parted))
            case Stepped():
                exact = (event.logits.tobytes(), event.draw and event.draw.u, event.shapes) if bits else ()
                found.append(
                    (event.turn, event.step, event.token_id, event.forced, event.text, event.held_bytes, exact)
                )
            case Stopped():
                found.append((event.turn, event.reason, event.evidence, event.text))
            case _:
                found.append((event.turn, event.kind))
    return found


def test_one_piece_of_work_at_a_time(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(follow_ups=["and the dog"]))
    assert talk.trace.events == ()
    assert not talk.finished
    kinds = []
    while events := talk.advance():
        kinds.append([event.kind for event in events])
    turn = [["rendered", "prefilled"], *[["stepped"]] * 5, ["stepped", "stopped"]]
    assert kinds == turn * 2
    assert talk.finished
    assert talk.advance() == ()
    assert talk.trace.turns == 2
    assert talk.trace.versions["torch"] == torch.__version__


def test_run_gives_the_events_of_the_trace(llama: LoadedModel) -> None:
    value = experiment(follow_ups=["and the dog"])
    assert told(tuple(run(llama, value))) == told(finish(Conversation(llama, value)).events)


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "sliding", "mixed", "hybrid"])
def test_a_second_turn_equals_a_cold_run_of_the_same_history(name: str) -> None:
    loaded = tiny(name)
    warm = finish(Conversation(loaded, experiment(follow_ups=["and the dog"], sampling={"do_sample": False})))
    history = [
        {"role": "user", "content": "the cat"},
        {"role": "assistant", "content": warm.answer(0)},
        {"role": "user", "content": "and the dog"},
    ]
    cold = finish(Conversation(loaded, experiment(messages=history, sampling={"do_sample": False})))
    rendered = warm.rendered(1)
    assert rendered is not None
    assert rendered.token_ids.tolist() == cold.rendered(0).token_ids.tolist()  # type: ignore[union-attr]
    assert [step.token_id for step in warm.steps(1)] == [step.token_id for step in cold.steps(0)]
    for left, right in zip(warm.steps(1), cold.steps(0), strict=True):
        assert left.kv_tokens == right.kv_tokens
        assert sorted(left.candidate_ids) == sorted(right.candidate_ids)
    prefilled = warm.prefilled(1)
    assert prefilled is not None
    assert prefilled.first == rendered.reused
    assert prefilled.last == len(rendered.token_ids) - 1
    if "sliding" in loaded.facts.layer_kinds:
        # Past its window such a layer has no way back: all of the cache is reused, or nothing.
        assert rendered.reused in {0, warm.steps(0)[-1].kv_tokens}
    elif "stateful" not in loaded.facts.layer_kinds:
        assert rendered.reused > 0


def test_reuse_ends_at_the_first_differing_pair(llama: LoadedModel) -> None:
    # An answer of bytes that are no text renders otherwise than it was sampled.
    half = llama.tokenizer.encode("你", add_special_tokens=False)[0]
    trace = finish(Conversation(llama, experiment(follow_ups=["go on"], forced=[{"step": 2, "token_id": half}])))
    first, second = trace.rendered(0), trace.rendered(1)
    assert first is not None
    assert second is not None
    fed = [*first.token_ids.tolist(), *(step.token_id for step in trace.steps(0))][:-1]
    common = kv_cache.common_prefix(fed, second.token_ids.tolist())
    assert second.reused == common < len(fed)
    assert second.parted is not None
    assert (second.parted.position, second.parted.cached_id) == (common, fed[common])
    assert second.parted.new_id == second.token_ids[common] != fed[common]


def test_a_history_that_only_grows_is_reused_whole(llama: LoadedModel) -> None:
    words = llama.tokenizer.encode("the mat", add_special_tokens=False)
    forced = [{"step": step, "token_id": token} for step, token in enumerate([*words, llama.facts.eos_ids[0]])]
    trace = finish(Conversation(llama, experiment(follow_ups=["go on"], forced=forced)))
    first, second = trace.rendered(0), trace.rendered(1)
    assert first is not None
    assert second is not None
    assert trace.answer(0) == "the mat"
    assert second.reused == len(first.token_ids) + len(words)
    assert second.parted is None


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(["llama", "gpt2", "sliding", "hybrid"]), greedy=st.booleans())
def test_any_path_ends_in_the_trace_that_its_experiment_alone_gives(
    data: st.DataObject, name: str, greedy: bool
) -> None:
    loaded = tiny(name)
    value = experiment(
        follow_ups=["and the dog"],
        sampling=SAMPLED | {"do_sample": not greedy},
        stop={"max_new_tokens": 5, "stop_strings": ["at"]},
    )
    talk = Conversation(loaded, value)
    bits = name in {"llama", "gpt2"}
    for _ in range(data.draw(st.integers(1, 14))):
        match data.draw(st.sampled_from(["advance", "advance", "advance", "back", "force", "cancel", "release"])):
            case "advance":
                talk.advance()
            case "back":
                had = talk.turn is not None and bool(talk.turn.answer)
                assert talk.back() is had
            case "force" if talk.turn is not None:
                made = len(talk.turn.answer)
                step = data.draw(st.integers(0, made))
                ended = bool(talk.trace.stopped(talk.turn.index)) and step == made
                if not ended:
                    talk.force(step, data.draw(st.integers(0, ROWS - 1)))
            case "cancel":
                talk.cancel()
            case "release":
                talk.release()
                bits = False
    trace = finish(talk)
    alone = finish(Conversation(loaded, talk.experiment))
    if bits:
        assert told(trace.events) == told(alone.events)
    else:
        # A cache that was built anew gives logits that differ in the last digits, and has other positions to reuse.
        assert ids(trace) == ids(alone)
        assert [trace.answer(turn) for turn in range(2)] == [alone.answer(turn) for turn in range(2)]


def test_back_takes_the_newest_token_and_its_end(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment())
    assert not talk.back()
    whole = told(finish(talk).events)
    assert talk.back()
    assert told(talk.trace.events) == whole[:-2]
    assert not talk.finished
    assert talk.turn is not None
    assert talk.turn.kv_tokens == len(talk.turn.prompt_ids) + 4
    while talk.back():
        pass
    assert [event.kind for event in talk.trace.events] == ["rendered", "prefilled"]
    assert told(finish(talk).events) == whole


def test_a_chosen_token_goes_into_the_experiment(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment())
    free = finish(talk)
    talk.force(2, 77)
    assert [step.step for step in talk.trace.of(Stepped)] == [0, 1]
    assert talk.experiment.forced_token(0, 2) == 77
    steered = finish(talk)
    assert ids(steered)[:2] == ids(free)[:2]
    assert (steered.steps(0)[2].token_id, steered.steps(0)[2].forced) == (77, True)
    # A choice on the branch that is left goes with it.
    talk.force(4, 78)
    talk.force(1, 79)
    assert [(item.step, item.token_id) for item in talk.experiment.forced] == [(1, 79)]
    # Choosing what would have come anyway takes the choice back.
    finish(talk)
    talk.force(1, free.steps(0)[1].token_id)
    assert talk.experiment.forced == ()
    assert ids(finish(talk)) == ids(free)


def test_what_cannot_be_chosen_is_refused_and_nothing_changes(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment())
    with pytest.raises(ExperimentError, match="0 tokens so far"):
        talk.force(0, 5)
    trace = finish(talk)
    with pytest.raises(ExperimentError, match=str(ROWS - 1)):
        talk.force(1, ROWS)
    with pytest.raises(ExperimentError, match="has ended"):
        talk.force(6, 5)
    with pytest.raises(ExperimentError):
        talk.force(-1, 5)
    assert talk.trace is trace


def test_a_token_outside_the_grammar_is_an_error_that_can_be_taken_back(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(grammar={"kind": "regex", "source": "[0-9]{6}"}))
    talk.advance()
    talk.advance()
    before = talk.turn._generator.get_state()  # type: ignore[union-attr]
    letter = llama.tokenizer.encode("x", add_special_tokens=False)[0]
    talk.force(1, letter)
    stopped = talk.advance()[-1]
    assert isinstance(stopped, Stopped)
    assert stopped.reason == "error"
    assert "grammar does not allow" in stopped.evidence["message"]
    assert talk.cache_bytes == 0
    assert torch.equal(talk.turn._generator.get_state(), before)  # type: ignore[union-attr]
    digit = llama.tokenizer.encode("7", add_special_tokens=False)[0]
    talk.force(1, digit)
    trace = finish(talk)
    assert trace.stopped(0).reason in {"grammar_end", "length"}  # type: ignore[union-attr]
    assert ids(trace) == ids(finish(Conversation(llama, talk.experiment)))


def test_cancel_and_go_on(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(stop={"max_new_tokens": 6, "stop_strings": ["zzzz"]}))
    talk.cancel()
    assert talk.trace.events == ()
    for _ in range(3):
        talk.advance()
    before = talk.trace.events
    talk.cancel()
    talk.cancel()
    stopped = talk.trace.stopped(0)
    assert stopped is not None
    assert (stopped.reason, stopped.evidence) == ("cancelled", {"step": 2})
    assert talk.finished
    assert talk.advance()[0].kind == "stepped"
    assert talk.trace.events[: len(before)] == before
    assert told(finish(talk).events) == told(finish(Conversation(llama, talk.experiment)).events)


def test_a_follow_up_after_the_end(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment())
    with pytest.raises(ExperimentError, match="has not ended"):
        talk.say("too early")
    finish(talk)
    talk.say("and the dog")
    assert not talk.finished
    assert talk.experiment.follow_ups == ("and the dog",)
    trace = finish(talk)
    assert trace.turns == 2
    assert told(trace.events) == told(finish(Conversation(llama, talk.experiment)).events)


def test_a_follow_up_after_a_cancelled_turn_is_replayed_by_the_experiment(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(stop={"max_new_tokens": 30}))
    for _ in range(5):
        talk.advance()
    talk.cancel()
    answer = talk.trace.answer(0)
    talk.say("and the dog")
    trace = finish(talk)
    assert trace.answer(0) == answer
    assert trace.stopped(0).reason == "eos"  # type: ignore[union-attr]
    assert trace.turns == 2
    assert told(trace.events) == told(finish(Conversation(llama, talk.experiment)).events)


def test_a_raw_prompt_has_no_second_turn(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(prompt="the"))
    trace = finish(talk)
    with pytest.raises(ExperimentError, match="raw prompt has no turns"):
        talk.say("more")
    assert talk.trace is trace


@pytest.mark.parametrize(
    ("count", "limit", "works"), [(0, None, False), (CONTEXT, None, True), (CONTEXT + 1, None, False), (9, 8, False)]
)
def test_prompts_that_are_empty_or_too_long(llama: LoadedModel, count: int, limit: int | None, works: bool) -> None:
    prompt = "x" * count
    trace = finish(Conversation(llama, experiment(prompt=prompt, context={"max_tokens": limit})))
    stopped = trace.stopped(0)
    assert stopped is not None
    if works:
        assert len(trace.steps(0)) == 1
        assert (stopped.reason, stopped.evidence["limit"]) == ("length", "context")
    else:
        assert stopped.reason == "error"
        assert not trace.steps(0)
        message = stopped.evidence["message"]
        assert "no tokens" in message or (str(count) in message and str(limit or CONTEXT) in message)


def test_a_follow_up_over_the_context_ends_the_conversation(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(follow_ups=["x" * CONTEXT]))
    trace = finish(talk)
    assert trace.stopped(1).reason == "error"  # type: ignore[union-attr]
    assert trace.rendered(1) is not None
    assert talk.cache_bytes == 0
    assert not talk.back()
    with pytest.raises(ExperimentError):
        talk.say("more")


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"grammar": {"kind": "regex", "source": "["}}, "grammar.source"),
        ({"sampling": {"suppress_tokens": [ROWS]}}, "sampling.suppress_tokens[0]"),
        ({"forced": [{"step": 0, "token_id": ROWS}]}, "forced (turn 0, step 0)"),
    ],
)
def test_a_bad_setting_is_an_event_with_its_path(llama: LoadedModel, fields: dict[str, Any], path: str) -> None:
    trace = finish(Conversation(llama, experiment(**fields)))
    stopped = trace.stopped(0)
    assert stopped is not None
    assert (stopped.reason, stopped.evidence["field"]) == ("error", path)


def test_a_cache_over_the_budget_is_refused_before_any_work(
    llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = experiment()
    prompt = len(llama.tokenizer.encode("<|im_start|>user\nthe cat<|im_end|>\n<|im_start|>assistant\n"))
    needed = llama.facts.kv_bytes(prompt + 5)
    assert finish(Conversation(llama, value, cache_budget=needed)).stopped(0).reason == "length"  # type: ignore[union-attr]

    def never(*_: Any) -> None:
        raise AssertionError("the model was called")

    monkeypatch.setattr("engine.decode.forward", never)
    stopped = finish(Conversation(llama, value, cache_budget=needed - 1)).stopped(0)
    assert stopped is not None
    assert str(needed) in stopped.evidence["message"]
    assert str(needed - 1) in stopped.evidence["message"]


ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory"),
]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("at", [0, 1, 4])
def test_memory_that_runs_out_is_an_event_and_the_cache_goes_back(
    llama: LoadedModel, monkeypatch: pytest.MonkeyPatch, error: Exception, at: int
) -> None:
    calls = 0
    caches = []

    def failing(model: Any, inputs: Any, cache: Any) -> Any:
        nonlocal calls
        caches.append(weakref.ref(cache))
        result = forward_module.forward(model, inputs, cache)
        calls += 1
        if calls == at + 1:
            raise type(error)(*error.args)
        return result

    talk = Conversation(llama, experiment())
    with monkeypatch.context() as patch:
        patch.setattr("engine.decode.forward", failing)
        trace = finish(talk)
    stopped = trace.stopped(0)
    assert stopped is not None
    assert stopped.reason == "error"
    assert "memory ran out" in stopped.evidence["message"]
    assert len(trace.steps(0)) == at
    assert talk.cache_bytes == 0
    gc.collect()
    assert all(cache() is None for cache in caches), "the cache is still held"
    other = finish(Conversation(llama, experiment()))
    assert other.stopped(0).reason == "length"  # type: ignore[union-attr]
    if at:
        assert talk.back()
        assert ids(finish(talk)) == ids(other)


def test_other_errors_of_the_program_are_not_hidden(llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("shapes cannot be multiplied")

    monkeypatch.setattr("engine.decode.forward", broken)
    with pytest.raises(RuntimeError, match="shapes"):
        Conversation(llama, experiment()).advance()


def test_interleaved_runs_equal_their_solo_runs(llama: LoadedModel) -> None:
    values = [experiment(sampling=SAMPLED | {"seed": seed}) for seed in range(16)]
    before = torch.get_rng_state()
    alone = [told(finish(Conversation(llama, value)).events) for value in values]
    talks = [Conversation(llama, value) for value in values]
    while not all(talk.finished for talk in talks):
        for talk in talks:
            talk.advance()
        torch.rand(3)  # somebody else's use of the global generator
    assert [told(talk.trace.events) for talk in talks] == alone
    assert len({tuple(ids(talk.trace)) for talk in talks}) > 10
    torch.set_rng_state(before)


def test_a_released_conversation_holds_no_cache(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment())
    for _ in range(4):
        talk.advance()
    assert talk.cache_bytes > 0
    assert talk.turn is not None
    cache = weakref.ref(talk.turn.cache)  # type: ignore[arg-type]
    talk.release()
    assert talk.cache_bytes == 0
    assert cache() is None
    assert ids(finish(talk)) == ids(finish(Conversation(llama, experiment())))


def test_a_model_without_a_template_says_what_to_do(llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama.tokenizer, "chat_template", None)
    stopped = finish(Conversation(llama, experiment())).stopped(0)
    assert stopped is not None
    assert stopped.reason == "error"
    assert "prompt" in stopped.evidence["message"]


def test_versions_name_every_library_that_decides_a_token() -> None:
    assert set(conversation_module.versions()) == {
        "python",
        "torch",
        "transformers",
        "tokenizers",
        "llguidance",
        "numpy",
    }
