"""Items of visitors where the model is elsewhere: a thread a visitor, so that one who waits for a GPU delays nobody."""

import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextvars import Context, copy_context
from typing import Any, TypeVar

from engine.worker import do_chore, settle

T = TypeVar("T")

Waiting = tuple[Context, Future[Any], Callable[[], Any]]


class VisitorThreads:
    """A queue a visitor, served in order by a thread that lives while there is something in it.

    An item runs in the context variables of whoever submitted it: there the lender of the GPU finds whose request it
    serves, and on whose account.
    """

    def __init__(self, chore: Callable[[], None], *, every: float = 1.0) -> None:
        self._chore = chore
        self._every = every
        self._queues: dict[Hashable, deque[Waiting]] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._do_chores, name="chores", daemon=True).start()

    def submit(self, visitor: Hashable, item: Callable[[], T]) -> Future[T]:
        """Queue `item`; the future gives its result or its exception. After `close` the future is cancelled."""
        future: Future[T] = Future()
        with self._lock:
            closed = self._closed.is_set()
            if not closed:
                served = visitor in self._queues
                self._queues.setdefault(visitor, deque()).append((copy_context(), future, item))
                if not served:
                    threading.Thread(target=self._serve, args=(visitor,), name="visitor", daemon=True).start()
        if closed:
            future.cancel()
        return future

    def drop(self, visitor: Hashable) -> None:
        """Cancel what this visitor has waiting; an item that is running ends as it would."""
        with self._lock:
            queue = self._queues.get(visitor, deque())
            waiting = [future for _, future, _ in queue]
            queue.clear()
        for future in waiting:
            future.cancel()

    def close(self) -> None:
        """Cancel everything that waits; running items end as they would."""
        with self._lock:
            self._closed.set()
            visitors = list(self._queues)
        for visitor in visitors:
            self.drop(visitor)

    def _serve(self, visitor: Hashable) -> None:
        while True:
            with self._lock:
                queue = self._queues[visitor]
                if not queue:
                    del self._queues[visitor]
                    return
                context, future, item = queue.popleft()
            context.run(settle, future, item)
            del context, future, item  # nothing of it is held while the next one is waited for

    def _do_chores(self) -> None:
        while not self._closed.wait(self._every):
            do_chore(self._chore)
