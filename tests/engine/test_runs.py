import itertools
import threading

import pytest

from engine.runs import Run
from engine.worker import Worker
from tests.patience import PATIENCE


@pytest.fixture
def worker():
    worker = Worker()
    yield worker
    worker.close()


def counting(worker, last, *, each=lambda number: None):
    """A run whose frames are 1, 2, … last."""
    numbers = itertools.count(1)

    def step(stopping):
        if stopping:
            return -1, False
        number = next(numbers)
        each(number)
        return number, number < last

    return Run(worker, "visitor", step)


def test_a_reader_gets_the_newest_frames_in_order_and_the_last_for_certain(worker):
    run = counting(worker, 50)
    run.begin()
    frames = list(run.follow())
    assert frames == sorted(set(frames))
    assert frames[-1] == 50
    assert run.ended


def test_a_slow_reader_misses_frames_and_does_not_slow_the_loop(worker):
    first, rest = threading.Event(), threading.Event()

    def each(number):
        if number == 2:
            first.set()
            assert rest.wait(PATIENCE)

    run = counting(worker, 30, each=each)
    run.begin()
    frames = run.follow()
    assert first.wait(PATIENCE)
    assert next(frames) == 1
    rest.set()
    run.wait()  # the loop ended though this reader took one frame only
    assert list(frames) == [30]


def test_who_comes_after_the_end_gets_the_last_frame(worker):
    run = counting(worker, 3)
    run.begin()
    run.wait()
    assert list(run.follow()) == [3]


def test_a_frame_that_is_the_same_object_is_not_shown_twice(worker):
    frame, steps = object(), itertools.count(1)
    run = Run(worker, "visitor", lambda stopping: (frame, next(steps) < 20))
    run.begin()
    assert list(run.follow()) == [frame]


def test_the_run_stops_when_its_last_reader_leaves_and_not_before(worker):
    made = []
    run = counting(worker, 10**9, each=made.append)
    run.begin()
    first, second = run.follow(), run.follow()
    next(first), next(second)
    first.close()
    assert not run.stopping
    next(second)
    second.close()
    run.wait()
    assert run.ended
    count = len(made)
    worker.submit("other", lambda: None).result(PATIENCE)
    assert len(made) == count


def test_what_a_step_raises_reaches_every_reader(worker):
    def each(number):
        if number == 3:
            raise KeyError("broken")

    run = counting(worker, 5, each=each)
    run.begin()
    for _ in range(2):
        with pytest.raises(KeyError, match="broken"):
            list(run.follow())
    run.wait()


def test_a_dropped_run_ends_and_lets_its_reader_go(worker):
    inside, leave = threading.Event(), threading.Event()

    def hold():
        inside.set()
        assert leave.wait(PATIENCE)

    worker.submit("other", hold)
    assert inside.wait(PATIENCE)
    run = counting(worker, 5)
    run.begin()
    worker.drop("visitor")
    assert list(run.follow()) == []
    assert run.ended
    leave.set()
