"""What the worker does for each session: single items, runs of steps, and whose cache goes when bytes run short."""

import itertools
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from engine import freed_memory
from engine.prefix_registry import PrefixRegistry
from engine.refusals import Busy
from engine.runs import Run
from engine.said import said
from engine.sessions import Session, Sessions, Work
from engine.settings import Settings
from engine.trace import Stepped, Stopped, ToolCalled, Trace
from engine.worker import Serves, Worker

if TYPE_CHECKING:
    from engine.conversation import Conversation

T = TypeVar("T")

STOP_FIRST = said("stop_first")


class Scheduler:
    """Turns what sessions ask for into items of the worker; conversations are touched on its thread alone.

    The worker's visitors are the `Session` objects: an id may be opened again while its former session winds up.
    """

    def __init__(
        self,
        sessions: Sessions,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        prefixes: PrefixRegistry | None = None,
        *,
        serve: Callable[[Callable[[], None]], Serves] = Worker,
    ) -> None:
        self._sessions = sessions
        self._prefixes = prefixes
        self._settings = settings
        self._clock = clock
        self._run_order = itertools.count(1)
        self._worker = serve(self.sweep)

    def call(self, session: Session, item: Callable[[], T]) -> T:
        """The result of `item`, run on the worker as this session's. Raises what it raises, and `SessionGone`."""

        def counted() -> T:
            if session.closed:  # since it was queued: its cache has gone back and must not come again
                raise self._sessions.gone(session.id)
            with ExitStack() as after:
                after.callback(self._count, session)
                return item()

        try:
            return self._worker.submit(session, counted).result()
        except CancelledError:
            raise self._sessions.gone(session.id) from None

    def change(self, session: Session, item: Callable[[], T]) -> T:
        """The result of `item`, run while no run of the session is under way. Raises `Busy` during one."""
        with session.lock:
            if self._settled(session):
                raise Busy(STOP_FIRST)
            return self.call(session, item)

    def begin(self, session: Session, *, one_token: bool = False) -> Run[Trace]:
        """A new run to the end or to the next token, or the one to the end that is under way.

        Waits for a single step, or a run that is stopping, to end first. Raises `Busy`, `NothingStarted`.
        """
        with session.lock:
            under_way = self._settled(session)
            if under_way and (one_token or session.work):
                raise Busy(STOP_FIRST)
            if under_way:
                return under_way
            step = partial(self._step, session, session.started)
            return self._begin(session, step, one_token=one_token)

    def begin_work(self, session: Session, work: Work) -> Run[Any]:
        """Do work beside the conversation, as a run whose frames are its results. Raises `Busy`."""
        with session.lock:
            if self._settled(session):
                raise Busy(STOP_FIRST)
            return self._begin(session, partial(self._work, session, work), work=work)

    def _begin(
        self,
        session: Session,
        step: Callable[[float, bool], tuple[Any, bool]],
        *,
        one_token: bool = False,
        work: Work | None = None,
    ) -> Run[Any]:
        """A new run of the session, whose lock is held; `step` is given the deadline and whether to wind up."""
        if self._sessions.running >= self._settings.max_runs:
            raise Busy(said("runs_full", count=self._settings.max_runs))
        session.run_order, session.bytes_given_back = next(self._run_order), 0
        session.one_token, session.work = one_token, work
        session.run = Run(self._worker, session, partial(step, self._clock() + self._settings.run_seconds))
        session.run.begin()
        return session.run

    def _work(self, session: Session, work: Work, deadline: float, stopping: bool) -> tuple[Any, bool]:
        """One piece of work beside the conversation. Returns what is known so far and whether to go on.

        Where bytes run short it waits, with what it has, until the runs that began earlier have ended.
        """
        if not (session.closed or stopping or self._clock() >= deadline) and self._sessions.must_wait(session):
            return None, True
        more = False
        with ExitStack() as on_end:
            on_end.callback(self._count, session)
            on_end.callback(self._end_work, session, work)
            if not session.closed and not stopping and self._clock() < deadline:
                more = work.advance()
            if more:
                on_end.pop_all()
                self._count(session)
        return work.result(), more

    @staticmethod
    def _end_work(session: Session, work: Work) -> None:
        work.release()
        if session.work is work:
            session.work = None

    def _settled(self, session: Session) -> Run[Trace] | None:
        """The run to the end that is under way, once a single step or a run that is stopping has ended."""
        if session.run and (session.run.stopping or session.one_token):
            session.run.wait()
        return session.run if session.running else None

    def _step(
        self, session: Session, conversation: "Conversation", deadline: float, stopping: bool
    ) -> tuple[Trace, bool]:
        """One piece of a run, on the worker: at most one forward. Returns the trace and whether to go on."""
        more = False
        if session.closed:
            conversation.release()
        elif stopping:
            conversation.cancel()
        elif self._clock() >= deadline:
            conversation.cancel(limit="run_seconds", seconds=self._settings.run_seconds)
        elif self._sessions.must_wait(session):
            session.bytes_given_back = max(session.bytes_given_back, session.cache_bytes)
            conversation.release()
            more = True
        else:
            with ExitStack() as on_failure:
                on_failure.callback(conversation.release)
                events = conversation.advance()
                on_failure.pop_all()
            session.bytes_given_back = 0
            made = any(isinstance(event, Stepped | Stopped | ToolCalled) for event in events)
            more = bool(events) and not conversation.finished and not (session.one_token and made)
        self._count(session)
        return conversation.trace, more

    def _count(self, session: Session) -> None:
        """Book what the session's cache holds now; where bytes run short, let system prompts kept for later go first,
        then the least recently used caches.
        """
        session.cache_bytes = sum(held.cache_bytes for held in (session.conversation, session.work) if held)
        if self._prefixes is not None:
            self._prefixes.shrink(self._sessions.room)
        for other in self._sessions.over_budget():
            if other.conversation:
                other.conversation.release()
            other.cache_bytes = 0

    def sweep(self) -> None:
        """Give up the sessions that were idle for too long, and memory that is free. About every second."""
        for session in self._sessions.remove_idle():
            self.give_up(session)
        freed_memory.give_back()

    def give_up(self, session: Session) -> None:
        """End a session that the registry no longer holds. Only queues what is left to do: never waits nor raises."""
        session.closed = True
        if session.run:
            session.run.stop()
        self._worker.drop(session)

        def release() -> None:
            for held in (session.conversation, session.work):
                if held:
                    held.release()
            if self._prefixes is not None:
                self._prefixes.forget(session.id)

        self._worker.submit(session, release)

    def close(self) -> None:
        """End the worker; nothing runs after this."""
        self._worker.close()
