"""What cannot be done is an event with its reason, and the cache goes back."""

import gc
import weakref
from typing import Any

import pytest
import torch

from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.stages import forward as forward_module
from engine.trace import Stopped
from tests.engine.conversations import experiment, finish, ids
from tests.engine.models import CONTEXT, ROWS


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
    assert stopped.evidence["message"].key == "memory_ran_out"  # the page says it in its own language
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
    conversation = Conversation(llama, experiment())
    with pytest.raises(RuntimeError, match="shapes"):
        conversation.advance()
    stopped = conversation.trace.events[-1]
    assert isinstance(stopped, Stopped)
    assert (stopped.reason, conversation.finished, conversation.cache_bytes) == ("error", True, 0)
    assert "RuntimeError" in stopped.evidence["message"]
    assert stopped.evidence["message"].key == "program_failed"


def test_a_model_without_a_template_says_what_to_do(llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama.tokenizer, "chat_template", None)
    stopped = finish(Conversation(llama, experiment())).stopped(0)
    assert stopped is not None
    assert stopped.reason == "error"
    assert "prompt" in stopped.evidence["message"]
