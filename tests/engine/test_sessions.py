from types import SimpleNamespace

import pytest

from engine.refusals import Busy, NothingStarted, SessionGaveWay, SessionGone, SessionIdle
from engine.sessions import Session, Sessions

RUNNING = SimpleNamespace(ended=False)
ENDED = SimpleNamespace(ended=True)


def sessions(clock, *, limit=3, idle_seconds=60.0, cache_bytes=100):
    return Sessions(limit=limit, idle_seconds=idle_seconds, cache_bytes=cache_bytes, clock=clock)


def open_at(registry, clock, now, *, cache_bytes=0, run=None) -> Session:
    clock.now = now
    session, _ = registry.open()
    session.cache_bytes = cache_bytes
    session.run = run
    return session


def test_ids_differ_and_cannot_be_guessed(clock):
    registry = sessions(clock, limit=100)
    ids = {registry.open()[0].id for _ in range(100)}
    assert len(ids) == 100
    assert min(map(len, ids)) >= 20


def test_a_known_id_keeps_its_session(clock):
    registry = sessions(clock)
    first, _ = registry.open("page")
    again, evicted = registry.open("page")
    assert again is first
    assert evicted is None


def test_an_id_that_was_never_given_or_was_removed_is_gone(clock):
    registry = sessions(clock)
    session, _ = registry.open()
    assert registry.get(session.id) is session
    assert registry.remove(session.id) is session
    assert registry.remove(session.id) is None
    for name in (session.id, "never", ""):
        with pytest.raises(SessionGone, match="reload the page"):
            registry.get(name)


def test_a_session_without_a_conversation_says_so(clock):
    with pytest.raises(NothingStarted, match="start an experiment"):
        _ = sessions(clock).open()[0].started


def test_a_full_house_gives_the_place_of_the_least_recently_used_that_is_not_running(clock):
    registry = sessions(clock, limit=3)
    running = open_at(registry, clock, 1, run=RUNNING)
    oldest = open_at(registry, clock, 2)
    newer = open_at(registry, clock, 3, run=ENDED)
    clock.now = 4
    registry.get(oldest.id)
    _, evicted = registry.open()
    assert evicted is newer
    assert registry.get(running.id) is running
    with pytest.raises(SessionGone):
        registry.get(newer.id)


def why_gone(registry, session_id):
    with pytest.raises(SessionGone) as gone:
        registry.get(session_id)
    assert type(registry.gone(session_id)) is gone.type
    return gone.type


def test_why_a_session_was_put_away_is_remembered_until_its_id_is_opened_anew_or_closed(clock, monkeypatch):
    registry = sessions(clock, limit=2, idle_seconds=60)
    pushed, idle = open_at(registry, clock, 0), open_at(registry, clock, 1)
    newer = open_at(registry, clock, 2)
    clock.now = 61
    registry.remove_idle()
    assert [why_gone(registry, session.id) for session in (pushed, idle)] == [SessionGaveWay, SessionIdle]
    registry.open(pushed.id)
    assert registry.get(pushed.id).id == pushed.id
    for session in (pushed, idle):
        registry.remove(session.id)
        assert why_gone(registry, session.id) is SessionGone
    monkeypatch.setattr("engine.sessions.REMEMBERED", 1)
    clock.now = 200
    registry.open("later")
    clock.now = 300
    registry.remove_idle()
    assert (why_gone(registry, newer.id), why_gone(registry, "later")) == (SessionGone, SessionIdle)


def test_a_house_full_of_runs_refuses_with_the_number(clock):
    registry = sessions(clock, limit=2)
    for now in range(2):
        open_at(registry, clock, now, run=RUNNING)
    with pytest.raises(Busy, match="all 2 sessions"):
        registry.open()


def test_idle_sessions_go_used_and_running_ones_stay(clock):
    registry = sessions(clock, limit=4, idle_seconds=60)
    idle, used = open_at(registry, clock, 0), open_at(registry, clock, 0)
    running = open_at(registry, clock, 0, run=RUNNING)
    clock.now = 59.9
    registry.get(used.id)
    assert registry.remove_idle() == []
    clock.now = 60
    assert registry.remove_idle() == [idle]
    running.run = ENDED
    clock.now = 119.8
    assert registry.remove_idle() == []
    clock.now = 119.9
    assert registry.remove_idle() == [used]  # the other counts from when it was last seen running
    clock.now = 120
    assert registry.remove_idle() == [running]


def test_the_least_recently_used_caches_go_until_the_rest_fits(clock):
    registry = sessions(clock, limit=9, cache_bytes=100)
    first = open_at(registry, clock, 1, cache_bytes=40)
    empty = open_at(registry, clock, 2)
    running = open_at(registry, clock, 3, cache_bytes=40, run=RUNNING)
    second = open_at(registry, clock, 4, cache_bytes=20)
    assert registry.over_budget() == []  # 100 of 100
    third = open_at(registry, clock, 5, cache_bytes=1)
    assert registry.over_budget() == [first]
    third.cache_bytes = 50
    assert registry.over_budget() == [first, second]
    clock.now = 6
    registry.get(first.id)
    assert registry.over_budget() == [second, third]
    assert empty not in registry.over_budget()
    running.cache_bytes = 1_000
    assert running not in registry.over_budget()


def test_of_runs_that_do_not_fit_together_the_latest_waits_and_the_earliest_never_does(clock):
    registry = sessions(clock, limit=9, cache_bytes=100)
    first, second, third = (open_at(registry, clock, 0, cache_bytes=40, run=RUNNING) for _ in range(3))
    first.run_order, second.run_order, third.run_order = 1, 2, 3
    assert [registry.must_wait(session) for session in (first, second, third)] == [False, False, True]
    third.cache_bytes, third.bytes_given_back = 0, 40
    assert registry.must_wait(third)
    second.run = ENDED
    assert not registry.must_wait(third)
    first.cache_bytes = 1_000
    assert not registry.must_wait(first)
