"""Who is here: the sessions, how long each is kept, and whose KV cache goes when bytes run short."""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from engine.branches import Branches
from engine.refusals import Busy, NothingStarted, SessionGaveWay, SessionGone, SessionIdle
from engine.runs import Run
from engine.said import said

if TYPE_CHECKING:
    from engine.conversation import Conversation

#: Sessions that were put away of which the reason is remembered.
REMEMBERED = 10_000


class Work(Protocol):
    """Work in pieces of about one forward, beside the conversation; `result` is what is known of it so far."""

    @property
    def cache_bytes(self) -> int: ...
    def advance(self) -> bool: ...
    def result(self) -> Any: ...
    def release(self) -> None: ...


@dataclass(eq=False)
class Session:
    """One visitor's conversation. `cache_bytes` is what its cache held after the last piece of work on it."""

    id: str
    used: float  # seconds on the registry's clock
    conversation: "Conversation | None" = None
    run: Run[Any] | None = None
    work: Work | None = None  # what the run does, where it does not go on with the conversation
    branches: Branches = field(default_factory=Branches)
    one_token: bool = False  # the run is a single step
    run_order: int = 0  # runs count up over all sessions
    cache_bytes: int = 0
    bytes_given_back: int = 0  # what the cache of a run that waits for room held
    closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)  # one start or begin of a run at a time

    @property
    def running(self) -> bool:
        return self.run is not None and not self.run.ended

    @property
    def started(self) -> "Conversation":
        """The conversation. Raises `NothingStarted`."""
        if self.conversation is None:
            raise NothingStarted
        return self.conversation


class Sessions:
    """The registry. It decides and never touches a model: caches are released by the caller, on the worker."""

    def __init__(
        self, *, limit: int, idle_seconds: float, cache_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._cache_bytes = cache_bytes
        self._clock = clock
        self._sessions: dict[str, Session] = {}
        self._put_away: OrderedDict[str, type[SessionGone]] = OrderedDict()  # id → why
        self._lock = threading.Lock()

    def open(self, session_id: str | None = None) -> tuple[Session, Session | None]:
        """A session, and the one that gave up its place for it: the least recently used that is not running.

        Without an id one is made that cannot be guessed; the session that has the id already is kept as it is.
        Raises `Busy` where every place is taken by a run.
        """
        session_id = session_id or secrets.token_urlsafe(16)
        with self._lock:
            if session_id in self._sessions:
                return self._sessions[session_id], None
            evicted = None
            if len(self._sessions) >= self._limit:
                evicted = min((s for s in self._sessions.values() if not s.running), key=_used, default=None)
                if evicted is None:
                    raise Busy(said("sessions_full", count=self._limit))
                self._remove(evicted, SessionGaveWay)
            session = Session(session_id, self._clock())
            self._sessions[session.id] = session
            self._put_away.pop(session.id, None)
            return session, evicted

    def get(self, session_id: str) -> Session:
        """The session, marked as used now. Raises `SessionGone`."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None:
                raise self._put_away.get(session_id, SessionGone)
            session.used = self._clock()
            return session

    def gone(self, session_id: str) -> SessionGone:
        """Why the id belongs to no session any more."""
        with self._lock:
            return self._put_away.get(session_id, SessionGone)()

    def remove(self, session_id: str) -> Session | None:
        """Take the session out; None where there is none."""
        with self._lock:
            self._put_away.pop(session_id, None)
            return self._sessions.pop(session_id, None)

    def remove_idle(self) -> list[Session]:
        """Take out the sessions that nobody used within the idle limit; a running one is in use."""
        with self._lock:
            now = self._clock()
            for session in self._sessions.values():
                if session.running:
                    session.used = now
            idle = [s for s in self._sessions.values() if now - s.used >= self._idle_seconds]
            for session in idle:
                self._remove(session, SessionIdle)
            return idle

    def _remove(self, session: Session, why: type[SessionGone]) -> None:
        """Put a session away, and remember why; the lock is held."""
        del self._sessions[session.id]
        self._put_away[session.id] = why
        while len(self._put_away) > REMEMBERED:
            self._put_away.popitem(last=False)

    @property
    def running(self) -> int:
        """Sessions with a run under way."""
        with self._lock:
            return sum(session.running for session in self._sessions.values())

    @property
    def room(self) -> int:
        """Bytes of the budget that no session's cache takes."""
        with self._lock:
            return max(0, self._cache_bytes - sum(session.cache_bytes for session in self._sessions.values()))

    def over_budget(self) -> list[Session]:
        """The sessions whose caches must go for the rest to fit: the least recently used first, never a running one."""
        with self._lock:
            excess = sum(session.cache_bytes for session in self._sessions.values()) - self._cache_bytes
            chosen = []
            for session in sorted(self._sessions.values(), key=_used):
                if excess <= 0:
                    break
                if session.cache_bytes and not session.running:
                    chosen.append(session)
                    excess -= session.cache_bytes
            return chosen

    def must_wait(self, session: Session) -> bool:
        """True when this running session's cache does not fit beside those of the runs that began earlier.

        It then gives its cache back until one of them ends (as vLLM preempts); the earliest always goes on.
        """
        with self._lock:
            earlier = [s for s in self._sessions.values() if s.running and s.run_order < session.run_order]
        taken = sum(s.cache_bytes for s in earlier)
        return taken > 0 and taken + max(session.cache_bytes, session.bytes_given_back) > self._cache_bytes


def _used(session: Session) -> float:
    return session.used
