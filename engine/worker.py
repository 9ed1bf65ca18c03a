"""The one thread that calls the model: work items wait by visitor and are served in turn, one at a time."""

import logging
import threading
import time
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


class Serves(Protocol):
    """Who runs the items of visitors: those of one visitor one after the other, in the order they came."""

    def submit(self, visitor: Hashable, item: Callable[[], T]) -> Future[T]: ...
    def drop(self, visitor: Hashable) -> None: ...
    def close(self) -> None: ...


class Worker:
    """One daemon thread, one queue a visitor, one item of each visitor in turn.

    A visitor whose item is submitted while n visitors wait is served after at most n + 1 items (the one that is
    running, and one of each that waits), however many items the others have queued.

    `chore` runs on the same thread between items, about every `every` seconds, also when nothing is asked for.
    """

    def __init__(self, chore: Callable[[], None] | None = None, *, every: float = 1.0) -> None:
        self._chore = chore
        self._every = every
        self._chore_due = time.monotonic() + every
        self._queues: OrderedDict[Hashable, deque[tuple[Future[Any], Callable[[], Any]]]] = OrderedDict()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="model-worker", daemon=True)
        self._thread.start()

    def submit(self, visitor: Hashable, item: Callable[[], T]) -> Future[T]:
        """Queue `item`; the future gives its result or its exception. After `close` the future is cancelled."""
        future: Future[T] = Future()
        with self._changed:
            closed = self._closed
            if not closed:
                self._queues.setdefault(visitor, deque()).append((future, item))
                self._changed.notify()
        if closed:
            future.cancel()
        return future

    def drop(self, visitor: Hashable) -> None:
        """Cancel what this visitor has waiting; an item that is running ends as it would."""
        with self._changed:
            waiting = self._queues.pop(visitor, deque())
        for future, _ in waiting:
            future.cancel()

    def close(self) -> None:
        """Cancel everything that waits, let the running item end, and end the thread."""
        with self._changed:
            self._closed = True
            waiting = [future for queue in self._queues.values() for future, _ in queue]
            self._queues.clear()
            self._changed.notify()
        for future in waiting:
            future.cancel()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _serve(self) -> None:
        while not self._closed:
            self._run_chore_when_due()
            # In a call of its own, so that an idle worker holds on to no item, nor to a cache behind it.
            self._serve_next()

    def _serve_next(self) -> None:
        """Run the next visitor's oldest item that was not cancelled; return without one when a chore is due."""
        with self._changed:
            if not self._queues and not self._closed:
                self._changed.wait(None if self._chore is None else max(0.0, self._chore_due - time.monotonic()))
            if not self._queues:
                return
            visitor, queue = self._queues.popitem(last=False)
            future, item = queue.popleft()
            if future.cancelled() and queue:
                # A cancelled item costs its visitor no turn.
                self._queues[visitor] = queue
                self._queues.move_to_end(visitor, last=False)
                return
            if queue:
                self._queues[visitor] = queue
        settle(future, item)

    def _run_chore_when_due(self) -> None:
        if self._chore is None or time.monotonic() < self._chore_due:
            return
        self._chore_due = time.monotonic() + self._every
        do_chore(self._chore)


def settle(future: Future[T], item: Callable[[], T]) -> None:
    """Run the item of a future that was not cancelled; what comes of it, or goes wrong, is the future's."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = item()
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the future, whatever it is
        # The frames' locals hold tensors: an exception that someone keeps must not keep a cache alive.
        inner = error.__traceback__ and error.__traceback__.tb_next
        traceback.clear_frames(inner)
        future.set_exception(error.with_traceback(inner))
    else:
        future.set_result(result)


def do_chore(chore: Callable[[], None]) -> None:
    """Do it; nobody waits for a chore, and the thread must outlive it."""
    try:
        chore()
    except Exception:
        log.exception("the worker's chore failed")
