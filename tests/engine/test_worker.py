import gc
import threading
import traceback
import weakref
from concurrent.futures import CancelledError, Future, wait

import pytest

from engine.worker import Worker
from tests.patience import PATIENCE


@pytest.fixture
def worker():
    worker = Worker()
    yield worker
    worker.close()


class Gate:
    """An item that says when it runs and ends when it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()

    def __call__(self) -> None:
        self.entered.set()
        assert self.leave.wait(PATIENCE)


def held(worker: Worker) -> Gate:
    gate = Gate()
    worker.submit("gate", gate)
    assert gate.entered.wait(PATIENCE)
    return gate


def test_a_result_and_an_exception_reach_the_future(worker):
    assert worker.submit("a", lambda: 41 + 1).result(PATIENCE) == 42
    with pytest.raises(ZeroDivisionError):
        worker.submit("a", lambda: 1 // 0).result(PATIENCE)
    assert worker.submit("b", lambda: "next").result(PATIENCE) == "next"


def test_items_run_on_one_thread_that_is_not_the_caller(worker):
    threads = {worker.submit(str(i), threading.get_ident).result(PATIENCE) for i in range(5)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_visitors_take_turns_and_each_keeps_its_order(worker):
    served: list[str] = []
    gate = held(worker)
    futures = [
        worker.submit(visitor, lambda name=f"{visitor}{i}": served.append(name))
        for visitor, count in (("a", 3), ("b", 1), ("c", 2))
        for i in range(count)
    ]
    gate.leave.set()
    wait(futures, PATIENCE)
    assert served == ["a0", "b0", "c0", "a1", "c1", "a2"]


def test_a_long_run_does_not_starve_eight_one_step_visitors(worker):
    """A loop that submits its next step as soon as one ends, and eight visitors that come while it runs."""
    served: list[str] = []
    first_steps, release = threading.Event(), threading.Event()
    steps: list[Future[None]] = []

    def step() -> None:
        served.append("long")
        if len(served) == 3:
            first_steps.set()
            assert release.wait(PATIENCE)
        if len(steps) < 100:
            steps.append(worker.submit("long", step))

    steps.append(worker.submit("long", step))
    assert first_steps.wait(PATIENCE)
    waiting = {}
    for visitor in range(8):
        waiting[visitor] = worker.submit(str(visitor), lambda visitor=visitor: served.append(str(visitor)))
    served_before = len(served)
    release.set()
    wait(waiting.values(), PATIENCE)
    for visitor in range(8):
        assert served.index(str(visitor)) - served_before <= visitor + 2
    while len(steps) < 100 or not steps[-1].done():
        wait(steps, PATIENCE)
    assert served.count("long") == 100


def test_a_cancelled_item_is_not_run_and_costs_no_turn(worker):
    served: list[str] = []
    gate = held(worker)
    cancelled = worker.submit("a", lambda: served.append("cancelled"))
    kept = worker.submit("a", lambda: served.append("a"))
    other = worker.submit("b", lambda: served.append("b"))
    assert cancelled.cancel()
    gate.leave.set()
    wait([kept, other], PATIENCE)
    assert served == ["a", "b"]


def test_drop_cancels_the_waiting_items_of_that_visitor_alone(worker):
    served: list[str] = []
    gate = held(worker)
    gone = [worker.submit("a", lambda: served.append("a")) for _ in range(3)]
    other = worker.submit("b", lambda: served.append("b"))
    worker.drop("a")
    worker.drop("nobody")
    assert all(future.cancelled() for future in gone)
    gate.leave.set()
    other.result(PATIENCE)
    assert worker.submit("a", lambda: "again").result(PATIENCE) == "again"
    assert served == ["b"]


def test_close_ends_the_thread_and_cancels_what_waits():
    worker = Worker()
    gate = held(worker)
    waiting = worker.submit("a", lambda: None)
    closing = threading.Thread(target=worker.close)
    closing.start()
    with pytest.raises(CancelledError):
        waiting.result(PATIENCE)
    assert closing.is_alive()  # the running item is let to its end
    gate.leave.set()
    closing.join(PATIENCE)
    assert not closing.is_alive()
    assert worker.submit("a", lambda: None).cancelled()


def test_the_chore_runs_while_nothing_is_asked_for_and_survives_its_own_failure(caplog):
    ran: list[int] = []
    twice = threading.Event()

    def chore() -> None:
        ran.append(threading.get_ident())
        if len(ran) == 1:
            raise ValueError("a bad chore")
        twice.set()

    worker = Worker(chore, every=0.01)
    try:
        assert twice.wait(PATIENCE)
        assert set(ran) == {worker.submit("a", threading.get_ident).result(PATIENCE)}
    finally:
        worker.close()
    assert "a bad chore" in caplog.text


class Cache:
    """Stands for what a forward holds."""


def test_an_idle_worker_holds_no_item(worker):
    cache = Cache()
    alive = weakref.ref(cache)
    assert worker.submit("a", lambda held=cache: held is not None).result(PATIENCE)
    del cache
    worker.submit("b", lambda: None).result(PATIENCE)
    gc.collect()
    assert alive() is None


def test_a_kept_exception_keeps_nothing_that_the_failed_item_made(worker):
    made: list[weakref.ref[Cache]] = []

    def failing() -> None:
        cache = Cache()
        made.append(weakref.ref(cache))
        raise MemoryError

    error = worker.submit("a", failing).exception(PATIENCE)
    gc.collect()
    assert isinstance(error, MemoryError)
    assert made[0]() is None
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)] == ["failing"]
