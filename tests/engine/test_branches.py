"""What a session leaves for another way is kept, within bounds, and can be gone back to; its experiment says it all."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.branches import MAX_BRANCHES, Branches
from engine.catalog import load_catalog
from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.refusals import Busy, Refused
from engine.runtime import Runtime
from engine.settings import Settings
from engine.trace import Rendered, Trace
from tests.engine.conversations import SAMPLED, experiment, finish, ids, told
from tests.engine.models import ROWS, tiny


@pytest.fixture
def runtime(llama: LoadedModel) -> Iterator[Runtime]:
    runtime = Runtime(llama, load_catalog(), Settings())
    yield runtime
    runtime.shut_down()


def started(runtime: Runtime, value: Experiment | None = None) -> str:
    session = runtime.open()
    runtime.start(session, value or experiment())
    return session


def ran(runtime: Runtime, session: str) -> Trace:
    return list(runtime.run(session))[-1]


def said(trace: Trace) -> list[object]:
    """All but what the cache has a part in: a cache that was given back has nothing to reuse in the next turn."""
    events = told(trace.events, bits=False)
    return [event[:3] if isinstance(kind, Rendered) else event
            for event, kind in zip(events, trace.events, strict=True)]  # fmt: skip


def other_token(trace: Trace, step: int) -> int:
    taken = trace.steps(0)[step]
    return next(int(token) for token in taken.candidate_ids if token != taken.token_id)


def test_another_token_leaves_the_run_behind_as_a_branch(runtime: Runtime) -> None:
    session = started(runtime)
    left = ran(runtime, session)
    runtime.force(session, 2, other_token(left, 2))
    (branch,) = runtime.branches(session)
    assert branch.trace is left
    assert ids(ran(runtime, session))[:2] == ids(left)[:2]


def test_the_token_that_stood_there_or_one_that_is_new_leaves_nothing_behind(runtime: Runtime) -> None:
    session = started(runtime)
    runtime.step(session)
    runtime.force(session, 1, 7)  # no token stood there
    trace = runtime.step(session)
    runtime.force(session, 1, trace.steps(0)[1].token_id)
    assert runtime.branches(session) == ()


def test_a_start_keeps_what_was_there_only_where_it_is_a_branch(runtime: Runtime) -> None:
    session = started(runtime)
    runtime.prepare(session)
    runtime.start(session, experiment(sampling={"seed": 5}), branch=True)  # no token was made: nothing to keep
    assert runtime.branches(session) == ()
    left = ran(runtime, session)
    runtime.start(session, experiment(sampling={"seed": 6}), branch=True)
    assert [branch.trace for branch in runtime.branches(session)] == [left]
    runtime.start(session, experiment())
    assert runtime.branches(session) == ()


def test_going_back_to_a_branch_keeps_what_was_there_in_its_place(runtime: Runtime) -> None:
    session = started(runtime)
    left = ran(runtime, session)
    runtime.force(session, 1, other_token(left, 1))
    second = ran(runtime, session)
    (branch,) = runtime.branches(session)
    assert runtime.take(session, branch.id) is left
    assert [kept.trace for kept in runtime.branches(session)] == [second]
    with pytest.raises(Refused, match="not kept any more"):
        runtime.take(session, branch.id)


def test_a_branch_that_was_left_in_the_middle_goes_on_as_it_would_have(runtime: Runtime, llama: LoadedModel) -> None:
    whole = finish(Conversation(llama, experiment()))
    session = started(runtime)
    for _ in range(3):
        runtime.step(session)
    runtime.start(session, experiment(sampling={"seed": 5}), branch=True)
    ran(runtime, session)
    runtime.take(session, runtime.branches(session)[0].id)
    assert ids(ran(runtime, session)) == ids(whole)


def test_a_probe_sees_a_branch(runtime: Runtime) -> None:
    session = started(runtime)
    left = ran(runtime, session)
    runtime.force(session, 1, other_token(left, 1))
    (branch,) = runtime.branches(session)
    taken = left.steps(0)[3]
    found = runtime.probe_branch(session, branch.id, "distribution", step=3, token_ids=[taken.token_id])
    index = taken.candidate_ids.tolist().index(taken.token_id)
    assert found.probabilities[-1, 0] == pytest.approx(taken.probabilities[-1, index], abs=1e-4)


def test_only_the_newest_branches_are_kept(llama: LoadedModel) -> None:
    branches = Branches()
    traces = [finish(Conversation(llama, experiment(sampling={"seed": seed}))) for seed in range(MAX_BRANCHES + 2)]
    for trace in traces:
        branches.keep(trace)
    assert [branch.trace for branch in branches] == traces[2:]
    assert [branch.id for branch in branches] == list(range(3, MAX_BRANCHES + 3))


def test_large_branches_are_fewer_and_what_they_share_counts_once(
    llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    branches, trace = Branches(), finish(Conversation(llama, experiment()))
    branches.keep(trace)
    size = branches.nbytes
    branches.keep(trace)
    assert branches.nbytes == size
    monkeypatch.setattr("engine.branches.MAX_BYTES", int(1.5 * size))
    other = finish(Conversation(llama, experiment(sampling={"seed": 3, "min_new_tokens": 6})))
    branches.keep(other)
    assert [branch.trace for branch in branches] == [other]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), name=st.sampled_from(["llama", "gpt2", "sliding", "hybrid"]))
def test_a_conversation_resumed_from_its_trace_goes_any_way_that_the_first_could(
    data: st.DataObject, name: str
) -> None:
    loaded = tiny(name)
    value = experiment(
        follow_ups=["and the dog"],
        sampling=SAMPLED | {"do_sample": data.draw(st.booleans())},
        stop={"max_new_tokens": 5, "stop_strings": ["at"]},
    )
    first = Conversation(loaded, value)
    for _ in range(data.draw(st.integers(0, 12))):
        first.advance()
    if data.draw(st.booleans()):
        first.cancel()
    second = Conversation.resumed(loaded, first.trace)
    assert second.trace is first.trace
    assert second.finished == first.finished
    for _ in range(data.draw(st.integers(0, 4))):
        assert second.back() == first.back()
        made = len(first.turn.answer) if first.turn else 0
        if made and data.draw(st.booleans()):
            token = data.draw(st.integers(0, ROWS - 1))
            first.force(made - 1, token)
            second.force(made - 1, token)
        if data.draw(st.booleans()):
            first.advance()
            second.advance()
    assert said(finish(second)) == said(finish(first))


@settings(max_examples=15, deadline=None)
@given(data=st.data(), name=st.sampled_from(["llama", "qwen3", "gpt2"]))
def test_every_branch_of_random_edits_gives_the_same_ids_from_its_experiment_alone(
    data: st.DataObject, name: str
) -> None:
    loaded = tiny(name)
    runtime = Runtime(loaded, load_catalog(), Settings())
    session = started(runtime, experiment(sampling=SAMPLED))
    try:
        for _ in range(data.draw(st.integers(2, 7))):
            now = runtime.trace(session)
            assert now is not None
            match data.draw(st.sampled_from(["run", "steps", "force", "setting", "message", "take"])):
                case "run":
                    ran(runtime, session)
                case "steps":
                    runtime.step(session)
                case "force" if now.steps(0) and now.turns == 1:
                    step = data.draw(st.integers(0, len(now.steps(0)) - 1))
                    runtime.force(session, step, data.draw(st.integers(0, ROWS - 1)))
                case "setting":
                    sampling = SAMPLED | {"temperature": data.draw(st.sampled_from([0.5, 1.0, 2.0]))}
                    runtime.start(session, experiment(sampling=sampling), branch=True)
                case "message":
                    text = data.draw(st.sampled_from(["the dog", "one two", "Paris"]))
                    runtime.start(session, experiment(messages=[{"role": "user", "content": text}]), branch=True)
                case "take" if runtime.branches(session):
                    runtime.take(session, data.draw(st.sampled_from(runtime.branches(session))).id)
        now = runtime.trace(session)
        assert now is not None
        for trace in (*(branch.trace for branch in runtime.branches(session)), now):
            again = finish(Conversation(loaded, trace.experiment))
            assert ids(again)[: len(ids(trace))] == ids(trace)
    finally:
        runtime.shut_down()


def test_a_grid_is_a_run_of_its_session_and_leaves_no_cache(runtime: Runtime) -> None:
    session = started(runtime)
    left = ran(runtime, session)
    frames = runtime.grid(session, experiment(), [{"seed": seed} for seed in range(3)])
    next(frames)
    with pytest.raises(Busy, match="press Stop first"):
        runtime.back(session)
    with pytest.raises(Busy, match="press Stop first"):
        next(runtime.run(session))
    last = list(frames)[-1]
    assert last.done
    assert runtime.trace(session) is left
    assert runtime.branches(session) == ()
    runtime.back(session)


def test_a_grid_that_must_wait_for_room_goes_on_afterwards(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, True, True, False, True])
    monkeypatch.setattr(runtime._sessions, "must_wait", lambda _: next(answers, False))
    frames = list(runtime.grid(started(runtime), experiment(), [{"seed": 1}, {"seed": 2}]))
    assert None not in frames
    assert frames[-1].done


def test_the_time_limit_of_a_run_is_that_of_a_grid_too(llama: LoadedModel) -> None:
    now = iter(range(0, 10**6, 100))
    runtime = Runtime(llama, load_catalog(), Settings(run_seconds=150, idle_seconds=10**9), clock=lambda: next(now))
    try:
        value = experiment(sampling={"min_new_tokens": 300}, stop={"max_new_tokens": 300})
        frames = list(runtime.grid(started(runtime), value, [{"seed": 1}]))
        assert not frames[-1].done
    finally:
        runtime.shut_down()


def test_a_grid_ends_when_its_reader_leaves_or_stop_is_pressed(runtime: Runtime) -> None:
    session = started(runtime)
    value = experiment(sampling={"min_new_tokens": 300}, stop={"max_new_tokens": 300})
    for leave in ("close", "stop", "end"):
        frames = runtime.grid(session, value, [{"seed": seed} for seed in range(3)])
        first = next(frames)
        assert not first.done
        if leave == "close":
            frames.close()
        elif leave == "stop":
            runtime.stop(session)
            assert not list(frames)[-1].done
        else:
            runtime.close(session)
            frames.close()
            continue
        runtime.stop(session)  # waits until it has ended
        runtime.step(session)
        assert runtime._sessions.get(session).work is None


@pytest.mark.parametrize("positions", ["go_on", "restart"])
def test_a_run_in_a_sliding_window_is_resumed_where_it_stands(llama: LoadedModel, positions: str) -> None:
    value = experiment(
        follow_ups=["and the dog"],
        sampling=SAMPLED | {"min_new_tokens": 6},
        context={"strategy": "sliding_window", "positions": positions, "max_tokens": 24},
    )
    whole = finish(Conversation(llama, value))
    part = Conversation(llama, value)
    for _ in range(11):
        part.advance()
    assert 0 < len(part.trace.steps(1)) < 6
    assert ids(finish(Conversation.resumed(llama, part.trace))) == ids(whole)
