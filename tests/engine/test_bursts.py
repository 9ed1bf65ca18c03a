"""A runtime whose model is in forked processes: the same ids, Stop between tokens, refusals in plain words."""

import threading

import pytest

from engine.answers.grid import grid_of
from engine.bursts import FEW_SECONDS, MARGIN, MOST_TOKENS, SECONDS, Bursts
from engine.catalog import load_catalog
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.probes.grid import Grid
from engine.refusals import Refused
from engine.runtime import Runtime
from engine.settings import Settings
from engine.trace import Stepped
from engine.trace_json import trace_to_json
from tests.engine.conversations import SAMPLED, experiment, finish, ids
from tests.engine.fakes import Clock
from tests.engine.forking import Forking
from tests.patience import eventually

LONG = {"sampling": SAMPLED | {"min_new_tokens": 300}, "stop": {"max_new_tokens": 300}}


@pytest.fixture
def gpu():
    return Forking()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def runtime(llama, gpu, clock):
    settings = Settings(max_new_tokens=400)
    runtime = Runtime(llama, load_catalog(), settings, clock=clock, place=Bursts(llama, settings.cache_bytes, gpu))
    yield runtime
    runtime.shut_down()
    eventually(lambda: gpu.live == 0)


def started(runtime, **fields) -> str:
    session = runtime.open()
    runtime.start(session, experiment(**fields))
    return session


def run(runtime, session):
    for _ in runtime.run(session):
        pass
    return runtime.trace(session)


def test_prepare_step_and_run_draw_the_ids_of_one_process(runtime, gpu, llama):
    what = {"follow_ups": ["and"], "stop": {"max_new_tokens": 9}}
    whole = finish(Conversation(llama, experiment(**what)))
    session = started(runtime, **what)
    assert [event.kind for event in runtime.prepare(session).events] == ["rendered", "prefilled"]
    for made in (1, 2):
        assert len(runtime.step(session).steps(0)) == made
    assert ids(run(runtime, session)) == ids(whole)
    assert [arguments[1:] for _, arguments, _ in gpu.calls] == [
        (0, FEW_SECONDS), (1, FEW_SECONDS), (1, FEW_SECONDS), (MOST_TOKENS, SECONDS),
    ]  # fmt: skip
    assert [seconds for *_, seconds in gpu.calls] == [FEW_SECONDS + MARGIN] * 3 + [SECONDS + MARGIN]
    assert SECONDS + MARGIN < 60  # which is what the lender allows


def test_a_run_longer_than_a_burst_takes_several(runtime, gpu, llama, monkeypatch):
    monkeypatch.setattr("engine.bursts.MOST_TOKENS", 7)
    what = {"sampling": SAMPLED | {"min_new_tokens": 20}, "stop": {"max_new_tokens": 20}}
    session = started(runtime, **what)
    assert ids(run(runtime, session)) == ids(finish(Conversation(llama, experiment(**what))))
    assert len(gpu.calls) == 3


def test_tokens_come_one_by_one_while_the_burst_goes_on(runtime, gpu):
    session = started(runtime, **LONG)
    frames = runtime.run(session)
    seen = [len(next(frames).steps(0)) for _ in range(6)]
    assert seen == sorted(set(seen))
    assert seen[-1] < 300
    assert len(gpu.calls) == 1
    frames.close()
    runtime.stop(session)


def test_stop_ends_the_burst_between_two_tokens_and_run_goes_on(runtime, gpu, llama):
    session = started(runtime, **LONG)
    frames = runtime.run(session)
    next(frames)
    next(frames)
    trace = runtime.stop(session)
    assert trace.events[-1].reason == "cancelled"
    made = len(trace.steps(0))
    assert 0 < made < 300
    assert gpu.live == 0
    frames.close()
    assert ids(run(runtime, session)) == ids(finish(Conversation(llama, experiment(**LONG))))


def test_the_time_limit_of_a_run_holds(runtime, gpu, clock):
    session = started(runtime, **LONG)
    frames = runtime.run(session)
    next(frames)
    clock.now += Settings().run_seconds + 1
    for _ in frames:
        pass
    trace = runtime.trace(session)
    assert trace.events[-1].evidence["limit"] == "run_seconds"
    assert gpu.live == 0


def test_a_visitor_who_leaves_ends_the_burst(runtime, gpu):
    session = started(runtime, **LONG)
    frames = runtime.run(session)
    next(frames)
    runtime.close(session)
    eventually(lambda: gpu.live == 0)


def test_back_force_say_and_branches_need_no_gpu(runtime, gpu, llama):
    session = started(runtime)
    run(runtime, session)
    before = len(gpu.calls)
    assert len(runtime.back(session).steps(0)) == 5
    runtime.force(session, 2, 50)
    assert len(gpu.calls) == before
    forced = run(runtime, session)
    assert ids(forced) == ids(finish(Conversation(llama, experiment(forced=[{"turn": 0, "step": 2, "token_id": 50}]))))
    (branch,) = runtime.branches(session)
    assert runtime.take(session, branch.id).turns == 1
    run(runtime, session)
    runtime.say(session, "and")
    assert run(runtime, session).turns == 2
    assert runtime.trace(session).rendered(1).reused > 0  # as where the cache stayed


def test_probes_are_asked_there_and_not_during_a_run(runtime, gpu):
    session = started(runtime, **LONG)
    frames = runtime.run(session)
    next(frames)
    with pytest.raises(Refused, match="drawn when the run has ended"):
        runtime.probe(session, "lens")
    runtime.stop(session)
    assert runtime.probe(session, "lens", position=4).position == 4
    assert gpu.calls[-1][0] == "probe"
    with pytest.raises(ExperimentError, match="layer"):
        runtime.ask(trace_to_json(runtime.trace(session)), "residual", {"layer": 9})


def test_the_endpoints_run_there_too(runtime, llama):
    whole = finish(Conversation(llama, experiment()))
    assert ids(runtime.complete(experiment())) == ids(whole)
    asked, answer = runtime.ask(experiment().model_dump(), "lens", {"step": 2})
    assert (asked["turn"], answer.next_id) == (0, whole.steps(0)[2].token_id)
    asked, answer = runtime.ask(trace_to_json(whole), "lens", {"step": 2})
    assert answer.next_id == whole.steps(0)[2].token_id


def test_a_grid_is_one_call(runtime, gpu, llama):
    session = started(runtime)
    cells = grid_of([0.7, 1.4], [1, 2])
    results = list(runtime.grid(session, experiment(), cells))
    assert results[-1].done
    direct = Grid(llama, experiment(), cells)
    while direct.advance():
        pass
    assert [cell.token_ids for cell in results[-1].cells] == [cell.token_ids for cell in direct.result().cells]
    assert [task for task, *_ in gpu.calls] == ["cells"]


def test_a_gpu_that_cannot_be_had_is_told_and_what_was_made_stays(runtime, gpu):
    session = started(runtime)
    runtime.step(session)
    gpu.fail_next = Refused("no GPU time is left")
    with pytest.raises(Refused, match="no GPU time is left"):
        runtime.step(session)
    assert len(runtime.trace(session).steps(0)) == 1
    assert len(runtime.step(session).steps(0)) == 2


def test_a_burst_that_is_killed_keeps_what_came_before(runtime, gpu, llama):
    session = started(runtime, stop={"max_new_tokens": 6})
    gpu.abort_after = 4
    with pytest.raises(Refused, match="aborted"):
        run(runtime, session)
    gpu.abort_after = None
    assert 0 < len(runtime.trace(session).steps(0)) < 6
    assert ids(run(runtime, session)) == ids(finish(Conversation(llama, experiment())))


def test_nothing_that_the_process_changes_comes_back(runtime, gpu, llama):
    """Neither a cache nor a draw of a random generator of this process, nor anything kept on the model."""
    session = started(runtime)
    inside = runtime._sessions.get(session).conversation
    run(runtime, session)
    assert inside.cache_bytes == 0
    assert inside.captured == {}
    assert next(runtime.trace(session).of(Stepped)).kv_bytes > 0


def test_one_who_waits_for_a_gpu_delays_nobody(llama, clock):
    waiting, free = threading.Event(), threading.Event()

    def gpu(*, duration):
        def decorate(task):
            if task.__name__ != "more":
                return task

            def more(trace, tokens, seconds):
                if trace.experiment.messages[0].content == "slow":
                    waiting.set()
                    assert free.wait(20)
                yield from task(trace, tokens, seconds)

            return more

        return decorate

    runtime = Runtime(llama, load_catalog(), Settings(), clock=clock, place=Bursts(llama, 1 << 30, gpu))
    slow = started(runtime, messages=[{"role": "user", "content": "slow"}])
    thread = threading.Thread(target=runtime.step, args=(slow,))
    thread.start()
    assert waiting.wait(20)
    assert len(runtime.step(started(runtime)).steps(0)) == 1
    free.set()
    thread.join()
    assert len(runtime.trace(slow).steps(0)) == 1
    runtime.shut_down()
