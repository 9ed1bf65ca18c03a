"""Whose cache goes, and that it goes: tabs that close, idle sessions, a byte budget, runs that do not fit."""

import gc
import threading
import weakref

import pytest

from engine.probes.table import PROBES
from engine.refusals import SessionGone
from tests.engine.fakes import PREFILL_BYTES, STEP_BYTES, Gate, experiment, opened, settled, token_ids
from tests.patience import PATIENCE, eventually


def test_closing_stops_the_run_frees_the_cache_and_the_id_is_gone(make, lab, pool, monkeypatch):
    monkeypatch.setitem(PROBES, "never", lambda conversation: None)
    runtime = make()
    session = opened(runtime, 50)
    gate = Gate(lab, "Hello", at=4)
    reader = pool.submit(lambda: list(runtime.run(session)))
    assert gate.inside.wait(PATIENCE)
    waiting = pool.submit(runtime.probe, session, "never")
    eventually(lambda: runtime._scheduler._worker._queues)
    runtime.close(session)  # returns though the step is still running
    assert not gate.open.is_set()
    with pytest.raises(SessionGone):
        waiting.result(PATIENCE)
    gate.open.set()
    reader.result(PATIENCE)
    settled(runtime)
    assert lab.forwards.count("Hello") == 4
    assert lab.made[0].cache_bytes == 0
    for ask in (runtime.step, runtime.trace, runtime.stop):
        with pytest.raises(SessionGone):
            ask(session)


def test_close_never_raises(make):
    runtime = make()
    session = opened(runtime)
    runtime.step(session)
    runtime.close(session)
    runtime.close(session)
    runtime.close("never opened")
    other = opened(runtime)
    runtime.shut_down()
    runtime.close(other)


def test_a_run_that_begins_while_its_session_closes_holds_no_cache(make, lab):
    runtime = make()
    session = opened(runtime)
    runtime.step(session)
    held = runtime._sessions.get(session)
    runtime.close(session)
    list(runtime._scheduler.begin(held).follow())
    assert lab.live_caches == 0
    assert len(lab.forwards) == 2


def test_sixty_visitors_who_leave_in_every_way_leave_no_cache_and_no_conversation(make, lab, pool):
    runtime = make(max_runs=64)

    def visit(number):
        session = opened(runtime, 40, content=str(number))
        if number % 3 == 0:  # closes the tab in the middle of a run
            frames = runtime.run(session)
            next(frames)
            runtime.close(session)
            list(frames)
        elif number % 3 == 1:  # presses Stop, then closes
            frames = runtime.run(session)
            next(frames)
            runtime.stop(session)
            runtime.close(session)
        else:  # steps once and goes away without a word
            runtime.step(session)
            runtime.close(session)

    list(pool.map(visit, range(60)))
    settled(runtime)
    assert sum(made.cache_bytes > 0 for made in lab.made if made.name != "settle") == 0
    alive = [weakref.ref(made) for made in lab.made if made.name != "settle"]
    lab.made.clear()
    gc.collect()
    assert [ref() for ref in alive if ref() is not None] == []


def test_an_idle_session_is_given_up_on_the_worker_with_nobody_asking(make, lab, clock):
    runtime = make(idle_seconds=60)
    idle = opened(runtime, content="idle")
    runtime.step(idle)
    released = threading.Event()
    release = lab.made[0].release
    lab.made[0].release = lambda: (release(), released.set())
    clock.now = 61
    assert released.wait(PATIENCE)
    assert lab.live_caches == 0
    with pytest.raises(SessionGone):
        runtime.step(idle)


def test_over_the_byte_budget_the_least_recently_used_cache_goes_and_is_rebuilt_when_asked(make, lab, clock):
    runtime = make(cache_bytes=2 * (PREFILL_BYTES + 5 * STEP_BYTES))
    sessions = []
    for number in range(3):
        clock.now = number
        sessions.append(opened(runtime, content=str(number)))
        runtime.step(sessions[-1])
    assert [made.cache_bytes > 0 for made in lab.made] == [False, True, True]
    assert token_ids(runtime.trace(sessions[0])) == [0]  # its trace stays
    clock.now = 4
    assert token_ids(runtime.step(sessions[0])) == [0, 1]
    assert [made.cache_bytes > 0 for made in lab.made] == [True, False, True]


def test_runs_that_do_not_fit_together_take_turns_and_all_end_as_they_would_alone(make, lab, pool):
    budget = PREFILL_BYTES + 60 * STEP_BYTES
    runtime = make(cache_bytes=budget)
    most = []

    def measure(conversation):
        most.append(sum(made.cache_bytes for made in lab.made))

    lab.before_forward = measure
    traces = list(pool.map(lambda number: runtime.complete(experiment(50, content=str(number))), range(4)))
    assert all(len(token_ids(trace)) == 50 for trace in traces)
    assert all(trace.stopped(0).reason == "length" for trace in traces)
    assert max(most) <= budget + 4 * PREFILL_BYTES


def test_a_run_does_not_wait_for_what_an_earlier_one_gave_back(make, lab, pool):
    runtime = make(cache_bytes=100_000)
    long, other = opened(runtime, 50, content="long"), opened(runtime, content="other")
    session = runtime._sessions.get(other)
    session.bytes_given_back = 100_000  # as a run leaves it that was stopped while it waited for room
    gate = Gate(lab, "long", at=3)
    reader = pool.submit(lambda: list(runtime.run(long)))
    assert gate.inside.wait(PATIENCE)
    stepping = pool.submit(runtime.step, other)
    eventually(lambda: session.run is not None)
    gate.open.set()
    assert token_ids(stepping.result(PATIENCE)) == [0]
    reader.result(PATIENCE)
    assert lab.forwards.index("other") < 10 < lab.forwards.count("long")


def test_a_full_house_gives_the_oldest_idle_place_away(make, lab, clock):
    runtime = make(max_sessions=2)
    first = opened(runtime)
    runtime.step(first)
    clock.now = 1
    second = opened(runtime)
    clock.now = 2
    third = opened(runtime)
    runtime.step(third)
    assert lab.made[0].cache_bytes == 0
    with pytest.raises(SessionGone):
        runtime.step(first)
    assert token_ids(runtime.step(second)) == [0]


def test_an_id_opened_again_while_its_former_session_winds_up_loses_no_release(make, lab, pool):
    runtime = make()
    runtime.open("page")
    runtime.start("page", experiment(50, content="page"))
    gate = Gate(lab, "page", at=3)
    reader = pool.submit(lambda: list(runtime.run("page")))
    assert gate.inside.wait(PATIENCE)
    runtime.close("page")
    runtime.open("page")
    runtime.close("page")  # drops what the second session waits for, not the release of the first
    gate.open.set()
    reader.result(PATIENCE)
    settled(runtime)
    assert lab.made[0].cache_bytes == 0
