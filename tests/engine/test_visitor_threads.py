"""A thread a visitor: in order within one, side by side between two, in the context of whoever asked."""

import contextvars
import threading

import pytest

from engine.visitor_threads import VisitorThreads
from tests.patience import eventually

WHO = contextvars.ContextVar("who", default="nobody")


@pytest.fixture
def threads():
    threads = VisitorThreads(lambda: None)
    yield threads
    threads.close()


def test_items_of_a_visitor_keep_their_order_and_those_of_others_do_not_wait(threads):
    held, order = threading.Event(), []
    first = threads.submit("a", lambda: held.wait(20) and order.append(1))
    second = threads.submit("a", lambda: order.append(2))
    assert threads.submit("b", lambda: "at once").result(20) == "at once"
    assert not first.done()
    held.set()
    second.result(20)
    assert order == [1, 2]


def test_an_item_runs_in_the_context_of_whoever_asked_and_so_does_what_it_queues(threads):
    WHO.set("ada")
    first = threads.submit("a", lambda: (WHO.get(), threads.submit("a", WHO.get)))
    WHO.set("bob")
    who, following = first.result(20)
    assert (who, following.result(20)) == ("ada", "ada")


def test_what_an_item_raises_is_the_future_s(threads):
    with pytest.raises(ZeroDivisionError):
        threads.submit("a", lambda: 1 / 0).result(20)
    assert threads.submit("a", lambda: 2).result(20) == 2


def test_what_waits_can_be_dropped_and_closing_cancels_it():
    threads = VisitorThreads(lambda: None)
    held, inside = threading.Event(), threading.Event()
    running = threads.submit("a", lambda: inside.set() or held.wait(20))
    assert inside.wait(20)
    dropped = threads.submit("a", lambda: 1)
    threads.drop("a")
    waiting = threads.submit("a", lambda: 1)
    threads.close()
    assert dropped.cancelled()
    assert waiting.cancelled()
    assert threads.submit("a", lambda: 1).cancelled()
    held.set()
    assert running.result(20)


def test_threads_end_when_nothing_waits_and_a_chore_that_fails_is_done_again():
    done = []

    def chore():
        done.append(1)
        raise ValueError

    threads = VisitorThreads(chore, every=0.01)
    before = threading.active_count()
    for visitor in range(20):
        threads.submit(visitor, lambda: None).result(20)
    eventually(lambda: threading.active_count() <= before and len(done) > 2)
    threads.close()
