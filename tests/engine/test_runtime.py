"""One session of the runtime, its limits and its failures, on conversations without a model."""

import threading

import pytest

from engine.experiment import ExperimentError
from engine.probes.table import PROBES
from engine.refusals import NothingStarted, Refused
from tests.engine.fakes import Gate, experiment, opened, settled, token_ids
from tests.patience import PATIENCE


def test_every_press_of_step_shows_one_new_token(make):
    runtime = make()
    session = opened(runtime, 3)
    assert token_ids(runtime.trace(session)) == []
    for count in (1, 2, 3):
        assert len(token_ids(runtime.step(session))) == count
    trace = runtime.trace(session)
    assert trace.stopped(0).reason == "length"
    assert runtime.step(session) is trace  # finished: nothing is left to do


def test_prepare_renders_and_prefills_once_and_makes_no_token(make, lab):
    runtime = make()
    session = opened(runtime)
    trace = runtime.prepare(session)
    assert trace.prefilled(0) is not None
    assert trace.steps(0) == ()
    assert runtime.prepare(session) is trace
    assert token_ids(runtime.step(session)) == [0]
    assert len(lab.forwards) == 2


def test_run_goes_to_the_end_of_all_turns_and_its_frames_only_grow(make):
    runtime = make()
    frames = list(runtime.run(opened(runtime, 4, follow_ups=["and then?"])))
    counts = [len(frame.events) for frame in frames]
    assert counts == sorted(set(counts))
    assert [token_ids(frames[-1], turn) for turn in (0, 1)] == [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert frames[-1].stopped(1).reason == "length"


def test_back_force_and_say_change_the_trace_between_runs(make):
    runtime = make()
    session = opened(runtime, 3)
    list(runtime.run(session))
    assert token_ids(runtime.back(session)) == [0, 1]
    assert token_ids(runtime.force(session, 1, 7)) == [0]
    assert token_ids(runtime.step(session)) == [0, 7]
    list(runtime.run(session))
    runtime.say(session, "more")
    trace = list(runtime.run(session))[-1]
    assert trace.turns == 2
    assert token_ids(trace, 1) == [0, 1, 2]


def test_start_puts_a_new_conversation_in_place_and_gives_the_old_cache_back(make, lab):
    runtime = make()
    session = opened(runtime)
    runtime.step(session)
    trace = runtime.start(session, experiment(content="again"))
    assert trace.events == ()
    assert runtime.trace(session) is trace
    assert [made.cache_bytes for made in lab.made] == [0, 0]


def test_start_during_a_run_stops_that_run_and_the_next_run_is_of_the_new_one(make, lab, pool):
    runtime = make()
    session = opened(runtime, 50, content="old")
    gate = Gate(lab, "old", at=4)
    reader = pool.submit(lambda: list(runtime.run(session)))
    assert gate.inside.wait(PATIENCE)
    starting = pool.submit(runtime.start, session, experiment(2, content="new"))
    gate.open.set()
    starting.result(PATIENCE)
    assert token_ids(list(runtime.run(session))[-1]) == [0, 1]
    assert len(token_ids(reader.result(PATIENCE)[-1])) <= 4
    assert lab.made[0].cache_bytes == 0


def test_a_session_that_never_started_says_so_and_lives_on(make):
    runtime = make()
    session = runtime.open()
    assert runtime.trace(session) is None
    assert runtime.stop(session) is None
    for ask in (runtime.step, runtime.back, lambda session: list(runtime.run(session))):
        with pytest.raises(NothingStarted):
            ask(session)
    runtime.start(session, experiment())
    assert token_ids(runtime.step(session)) == [0]


def test_a_probe_gets_the_conversation_on_the_worker_thread_also_during_a_run(make, lab, pool, monkeypatch):
    seen = []

    def length(conversation, *, add):
        seen.append(threading.get_ident())
        return len(conversation.trace.events) + add

    monkeypatch.setitem(PROBES, "length", length)
    runtime = make()
    session = opened(runtime, 50)
    gate = Gate(lab, "Hello", at=3)
    reader = pool.submit(lambda: list(runtime.run(session)))
    assert gate.inside.wait(PATIENCE)
    probe = pool.submit(runtime.probe, session, "length", add=100)
    gate.open.set()
    assert probe.result(PATIENCE) >= 103
    reader.result(PATIENCE)
    assert set(seen) == lab.threads
    with pytest.raises(Refused, match="unknown probe 'nothing'"):
        runtime.probe(session, "nothing")


def test_an_experiment_beyond_the_limit_is_refused_with_both_numbers(make, lab):
    runtime = make(max_new_tokens=100)
    session = runtime.open()
    with pytest.raises(ExperimentError, match=r"stop\.max_new_tokens: at most 100 here, this asks for 101"):
        runtime.start(session, experiment(101))
    with pytest.raises(ExperimentError, match="at most 100"):
        runtime.complete(experiment(101))
    runtime.start(session, experiment(100))
    assert len(lab.made) == 1


def test_parse_takes_the_loaded_model_only_and_names_it(make):
    runtime = make()
    base = {"version": 1, "prompt": "Hi"}
    assert runtime.parse({**base, "model": "tiny"}).prompt == "Hi"
    with pytest.raises(ExperimentError, match="is not loaded; this program runs 'tiny'"):
        runtime.parse({**base, "model": runtime.catalog.default})
    with pytest.raises(ExperimentError, match="unknown model 'evil/model'"):
        runtime.parse({**base, "model": "evil/model"})


def test_complete_leaves_no_session_and_no_cache(make, lab):
    runtime = make(max_sessions=1)
    for _ in range(3):
        assert runtime.complete(experiment(4)).stopped(0).reason == "length"
    settled(runtime)
    assert all(made.cache_bytes == 0 for made in lab.made[:3])


@pytest.mark.parametrize("at", [1, 2, 5])
def test_a_failure_reaches_its_visitor_gives_the_cache_back_and_the_next_is_served(make, lab, at):
    runtime = make()
    failing, other = opened(runtime, 8, content="failing"), opened(runtime, 3, content="other")
    seen = []

    def fail(conversation):
        if conversation.name == "failing":
            seen.append(conversation)
            if len(seen) == at:
                raise MemoryError("no room")

    lab.before_forward = fail
    with pytest.raises(MemoryError, match="no room"):
        list(runtime.run(failing))
    assert lab.live_caches == 0
    assert token_ids(list(runtime.run(other))[-1]) == [0, 1, 2]
    assert len(token_ids(list(runtime.run(failing))[-1])) == 8  # the session lives on
