"""The runtime on small real models: interleaved runs, caches that come back, and nothing shared between visitors."""

import functools
import gc
import inspect
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import DynamicCache

from engine.catalog import load_catalog
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.place import Here
from engine.runtime import Runtime
from engine.settings import Settings
from engine.trace_json import trace_to_json
from tests.engine.fakes import FakeConversation, experiment, token_ids
from tests.engine.probes.test_inside import ended
from tests.patience import eventually


@pytest.fixture
def runtime(llama):
    runtime = Runtime(llama, load_catalog(), Settings(max_runs=64))
    yield runtime
    runtime.shut_down()


def seeded(seed, new_tokens=12, **fields):
    sampling = {"seed": seed, "temperature": 1.3, "top_k": 200}
    return experiment(new_tokens, content=f"What is seen in number {seed}?", sampling=sampling, **fields)


def alone(llama, what) -> list[int]:
    conversation = Conversation(llama, what)
    while conversation.advance():
        pass
    return token_ids(conversation.trace)


def live_caches() -> int:
    gc.collect()
    return sum(issubclass(type(item), DynamicCache) for item in gc.get_objects())


@pytest.mark.parametrize("close", [True, False])
def test_a_grid_that_is_left_gives_all_its_caches_back(runtime, close):
    before = live_caches()
    session = runtime.open()
    runtime.start(session, seeded(1))
    frames = runtime.grid(session, seeded(1, 200), [{"seed": seed, "min_new_tokens": 200} for seed in range(4)])
    next(frames)
    if close:
        runtime.close(session)
        frames.close()
    else:
        frames.close()
        runtime.stop(session)
        runtime.close(session)
    eventually(lambda: live_caches() == before)


def test_sixteen_interleaved_seeds_equal_their_solo_runs(runtime, llama):
    solo = [alone(llama, seeded(seed)) for seed in range(16)]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda seed: token_ids(runtime.complete(seeded(seed))), range(16)))
    assert together == solo
    assert len(set(map(tuple, solo))) == 16


def test_the_global_random_state_is_neither_read_nor_moved(runtime):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = token_ids(runtime.complete(seeded(3)))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert token_ids(runtime.complete(seeded(3))) == first


def test_two_sessions_step_in_turn_and_share_nothing(runtime, llama):
    sessions = [runtime.open() for _ in range(2)]
    for seed, session in enumerate(sessions):
        runtime.start(session, seeded(seed, 8))
    for _ in range(8):
        for session in sessions:
            runtime.step(session)
    for seed, session in enumerate(sessions):
        trace = runtime.trace(session)
        assert token_ids(trace) == alone(llama, seeded(seed, 8))
        assert f"number {seed}?" in trace.rendered(0).text


def test_stop_and_run_again_end_as_a_run_that_was_never_stopped(runtime, llama):
    session = runtime.open()
    runtime.start(session, seeded(5, 40))
    frames = runtime.run(session)
    next(frames)
    runtime.stop(session)
    frames.close()
    assert token_ids(list(runtime.run(session))[-1]) == alone(llama, seeded(5, 40))


def test_a_cache_that_went_for_want_of_bytes_is_rebuilt_and_the_tokens_are_the_same(llama):
    bytes_a_token = llama.facts.kv_bytes_per_token
    runtime = Runtime(llama, load_catalog(), Settings(cache_bytes=60 * bytes_a_token))
    sessions = [runtime.open() for _ in range(2)]
    for seed, session in enumerate(sessions):
        runtime.start(session, seeded(seed, 6))
    for _ in range(6):
        for session in sessions:
            runtime.step(session)
            held = [runtime._sessions.get(item).started.cache_bytes for item in sessions]
            assert sum(held) <= 60 * bytes_a_token
            assert held[sessions.index(session)] > 0
    assert [token_ids(runtime.trace(session)) for session in sessions] == [
        alone(llama, seeded(seed, 6)) for seed in range(2)
    ]
    runtime.shut_down()


def test_visitors_who_leave_in_every_way_leave_no_cache_behind(runtime):
    before = live_caches()

    holder = runtime.open()
    runtime.start(holder, seeded(0))
    runtime.step(holder)
    assert live_caches() == before + 1
    runtime.close(holder)

    def visit(number):
        session = runtime.open()
        runtime.start(session, seeded(number, 60))
        if number % 3 == 2:
            runtime.step(session)
        else:
            frames = runtime.run(session)
            next(frames)
            if number % 3:
                runtime.stop(session)
            else:
                runtime.close(session)
            frames.close()
        runtime.close(session)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(visit, range(30)))
    eventually(lambda: runtime._sessions.running == 0)
    runtime.complete(seeded(0, 1))
    eventually(lambda: live_caches() <= before)


@pytest.mark.parametrize("at", [1, 2, 6])
def test_out_of_memory_is_told_the_cache_goes_back_and_the_next_visitor_is_served(runtime, llama, monkeypatch, at):
    calls = []
    forward = type(llama.model).forward

    @functools.wraps(forward)
    def failing(*arguments, **named):
        calls.append(1)
        if len(calls) == at:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(*arguments, **named)

    monkeypatch.setattr(type(llama.model), "forward", failing)
    session = runtime.open()
    runtime.start(session, seeded(1))
    stopped = list(runtime.run(session))[-1].stopped(0)
    assert stopped.reason == "error"
    assert "memory ran out" in stopped.evidence["message"]
    assert runtime._sessions.get(session).cache_bytes == 0
    assert len(token_ids(runtime.complete(seeded(2)))) > 0
    runtime.start(session, seeded(1))
    assert len(token_ids(runtime.step(session))) == 1


def test_a_prompt_over_the_context_names_both_numbers_and_the_session_lives_on(runtime, llama):
    session = runtime.open()
    trace = runtime.start(session, experiment(content="word " * 3_000))
    trace = list(runtime.run(session))[-1]
    message = trace.stopped(0).evidence["message"]
    assert str(llama.facts.context) in message
    assert str(len(trace.rendered(0).token_ids)) in message
    runtime.start(session, experiment(1))
    assert len(token_ids(runtime.step(session))) == 1


def test_probes_answer_through_the_runtime(runtime):
    session = runtime.open()
    runtime.start(session, seeded(4, 6))
    list(runtime.run(session))
    assert runtime.probe(session, "parity").equal
    assert runtime.probe(session, "uncached", step=2).same_best
    found = runtime.probe(session, "distribution", step=1, count=5)
    assert len(found.token_ids) >= 5


def test_the_fake_conversation_has_the_face_of_the_real_one(llama):
    """What the tests without a model rely on is still so."""
    for name in ("advance", "back", "force", "say", "cancel", "release"):
        assert inspect.signature(getattr(FakeConversation, name)).parameters.keys() == (
            inspect.signature(getattr(Conversation, name)).parameters.keys()
        )
    real = Conversation(llama, experiment())
    assert not real.finished
    assert real.cache_bytes == 0
    assert real.trace.events == ()


def test_a_probe_is_asked_of_an_experiment_or_a_trace_by_a_visitor_of_its_own(runtime, llama):
    before = live_caches()
    what = seeded(5).model_dump(mode="json")
    arguments, found = runtime.ask(what, "lens", {"step": 3})
    trace = runtime.complete(seeded(5))
    assert found.next_id == trace.steps(0)[3].token_id
    assert arguments["position"] == trace.steps(0)[3].position - 1
    again, replayed = runtime.ask(trace_to_json(trace), "lens", {"step": 3})
    assert (again, replayed.next_id) == (arguments, found.next_id)
    assert runtime._sessions.running == 0
    assert not runtime._sessions._sessions
    del found, replayed
    assert live_caches() == before


def test_what_is_wrong_with_a_question_is_said_before_the_run(runtime, monkeypatch):
    monkeypatch.setattr(Runtime, "start", None)
    with pytest.raises(ExperimentError, match="layers 0 to 1"):
        runtime.ask(seeded(5).model_dump(mode="json"), "attention", {"layer": 2})
    with pytest.raises(ExperimentError, match="unknown probe"):
        runtime.ask(seeded(5).model_dump(mode="json"), "nothing", {})
    with pytest.raises(ExperimentError, match="a JSON object"):
        runtime.ask([], "lens", {})
    runtime._place = Here(runtime._loaded, 1_000)
    with pytest.raises(ExperimentError, match="a KV cache of turn 0 takes"):
        runtime.ask(trace_to_json(ended("llama").trace), "lens", {})
