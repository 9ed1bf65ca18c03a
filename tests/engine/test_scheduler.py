"""Stopping, and turns between visitors: at most one is inside the model, and nobody waits for long."""

import pytest

from engine.refusals import Busy
from engine.trace import Stopped
from tests.engine.fakes import Gate, experiment, opened, settled, token_ids
from tests.patience import PATIENCE, eventually


def test_stop_takes_effect_within_the_step_that_runs_and_run_goes_on_from_there(make, lab, pool):
    runtime = make()
    session = opened(runtime, 50)
    gate = Gate(lab, "Hello", at=4)
    reader = pool.submit(lambda: list(runtime.run(session)))
    assert gate.inside.wait(PATIENCE)
    stopping = pool.submit(runtime.stop, session)
    eventually(lambda: runtime._sessions.get(session).run.stopping)
    gate.open.set()
    trace = stopping.result(PATIENCE)
    assert token_ids(trace) == [0, 1, 2]
    assert trace.stopped(0).reason == "cancelled"
    assert reader.result(PATIENCE)[-1] is trace
    assert len(lab.forwards) == 4
    assert token_ids(runtime.step(session)) == [0, 1, 2, 3]
    assert runtime.trace(session).stopped(0) is None


def test_stop_without_a_run_changes_nothing(make):
    runtime = make()
    session = opened(runtime)
    trace = runtime.step(session)
    assert runtime.stop(session) is trace


def test_stop_during_a_slow_step_and_another_visitor_starts_one_at_a_time_inside_the_model(make, lab, pool):
    runtime = make()
    slow, other = opened(runtime, 50, content="slow"), opened(runtime, 5, content="other")
    gate = Gate(lab, "slow", at=3)
    reader = pool.submit(lambda: list(runtime.run(slow)))
    assert gate.inside.wait(PATIENCE)
    stopping = pool.submit(runtime.stop, slow)
    started = pool.submit(lambda: list(runtime.run(other)))
    assert lab.forwards.count("other") == 0  # the slow step is still inside
    gate.open.set()
    assert token_ids(started.result(PATIENCE)[-1]) == [0, 1, 2, 3, 4]
    assert stopping.result(PATIENCE).stopped(0).reason in {"cancelled", "length"}
    reader.result(PATIENCE)
    assert lab.most_inside == 1
    assert len(lab.threads) == 1


def test_a_second_run_follows_the_first_and_starts_no_second_loop(make, lab, pool):
    runtime = make()
    session = opened(runtime, 6)
    gate = Gate(lab, "Hello", at=3)
    readers = [pool.submit(lambda: list(runtime.run(session)))]
    assert gate.inside.wait(PATIENCE)
    run = runtime._sessions.get(session).run
    readers.append(pool.submit(lambda: list(runtime.run(session))))
    eventually(lambda: run._readers == 2)
    for change in (runtime.step, runtime.back, lambda session: runtime.force(session, 0, 1)):
        with pytest.raises(Busy, match="press Stop first"):
            change(session)
    gate.open.set()
    assert {token_ids(reader.result(PATIENCE)[-1])[-1] for reader in readers} == {5}
    assert len(lab.forwards) == 1 + 6  # a prefill and six steps


def test_two_presses_of_step_at_once_make_two_tokens(make, lab, pool):
    runtime = make()
    session = opened(runtime)
    for press in [pool.submit(runtime.step, session) for _ in range(2)]:
        press.result(PATIENCE)
    assert token_ids(runtime.trace(session)) == [0, 1]


def test_a_reader_that_leaves_stops_the_run(make, lab):
    runtime = make()
    session = opened(runtime, 100_000 // 50)
    frames = runtime.run(session)
    next(frames)
    frames.close()
    run = runtime._sessions.get(session).run
    run.wait()
    assert runtime.trace(session).events[-1].reason == "cancelled"
    made = len(lab.forwards)
    settled(runtime)
    assert lab.forwards.count("Hello") == made


def test_a_run_that_nobody_listens_to_ends_at_the_time_limit(make, lab, clock):
    runtime = make(run_seconds=60)
    session = opened(runtime, 1_000)

    def later(conversation):
        clock.now += 1

    lab.before_forward = later
    frames = runtime.run(session)
    next(frames)  # and never again
    runtime._sessions.get(session).run.wait()
    stopped = runtime.trace(session).stopped(0)
    assert stopped.reason == "cancelled"
    assert stopped.evidence == {"limit": "run_seconds", "seconds": 60}
    assert 55 <= len(token_ids(runtime.trace(session))) <= 60
    frames.close()


def test_the_trace_of_a_stopped_run_ends_with_its_reason(make, pool):
    runtime = make()
    session = opened(runtime, 2_000)
    frames = runtime.run(session)
    next(frames)
    trace = runtime.stop(session)
    assert isinstance(trace.events[-1], Stopped)
    assert list(frames)[-1] is trace


def test_one_step_visitors_wait_for_at_most_two_items_more_than_wait_before_them(make, lab, pool):
    runtime = make()
    long = opened(runtime, 1_000, content="long")
    visitors = [opened(runtime, content=f"visitor {number}") for number in range(8)]
    for session in visitors:
        runtime.step(session)
    gate = Gate(lab, "long", at=10)
    reader = pool.submit(lambda: list(runtime.run(long)))
    assert gate.inside.wait(PATIENCE)
    before = len(lab.forwards)
    presses = [pool.submit(runtime.step, session) for session in visitors]
    eventually(lambda: len(runtime._scheduler._worker._queues) == 8)
    gate.open.set()
    for press in presses:
        press.result(PATIENCE)
    served = [lab.forwards.index(f"visitor {number}", before) - before for number in range(8)]
    assert max(served) <= 8 + 2
    runtime.stop(long)
    reader.result(PATIENCE)


def test_two_long_runs_interleave_token_by_token(make, lab, pool):
    runtime = make()
    sessions = [opened(runtime, 30, content=name) for name in "ab"]
    gate = Gate(lab, "a", at=1)
    readers = [pool.submit(lambda session=session: list(runtime.run(session))) for session in sessions]
    assert gate.inside.wait(PATIENCE)
    eventually(lambda: runtime._scheduler._worker._queues)
    gate.open.set()
    for reader in readers:
        reader.result(PATIENCE)
    order = "".join(lab.forwards).lstrip("b")
    assert "aa" not in order.rstrip("a")
    assert "bb" not in order.rstrip("b")


def test_sixteen_interleaved_runs_equal_their_solo_runs_and_share_nothing(make, lab, pool):
    runtime = make()

    def seeded(seed):
        return experiment(12, content=f"seed {seed}", sampling={"seed": seed})

    solo = [token_ids(runtime.complete(seeded(seed))) for seed in range(16)]
    together = list(pool.map(lambda seed: token_ids(runtime.complete(seeded(seed))), range(16)))
    assert together == solo
    assert len({tuple(ids) for ids in together}) == 10  # the fake counts up from the seed modulo 10
    assert lab.most_inside == 1


def test_more_runs_at_once_than_allowed_are_refused_with_the_number(make, lab, pool):
    runtime = make(max_runs=2)
    sessions = [opened(runtime, 50, content=name) for name in "abc"]
    gate = Gate(lab, "a", at=1)
    readers = [pool.submit(lambda s=s: list(runtime.run(s))) for s in sessions[:2]]
    assert gate.inside.wait(PATIENCE)
    eventually(lambda: runtime._sessions.running == 2)
    with pytest.raises(Busy, match="2 runs are under way"):
        next(runtime.run(sessions[2]))
    gate.open.set()
    for reader in readers:
        reader.result(PATIENCE)
    assert len(token_ids(list(runtime.run(sessions[2]))[-1])) == 50
