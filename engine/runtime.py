"""The one door to the engine: sessions that step, run, stop and go back, on one worker, within the limits."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from engine.answers.grid import GridResult
from engine.asking import check
from engine.branches import Branch
from engine.catalog import Catalog
from engine.conversation import Conversation
from engine.experiment import Experiment, ExperimentError, parse_experiment
from engine.facts import ModelFacts
from engine.given_trace import fed, is_trace, parse_trace
from engine.limits import check_new_tokens
from engine.model import LoadedModel
from engine.place import Here, Place
from engine.prefix_registry import PrefixRegistry
from engine.probes.table import PROBES
from engine.refusals import Refused
from engine.runs import last_of
from engine.said import said
from engine.scheduler import Scheduler
from engine.sessions import Session, Sessions
from engine.settings import Settings
from engine.tools.registry import TOOLS
from engine.trace import Trace

#: Of the bytes for caches, one part in this many may hold system prompts for later conversations.
PREFIX_SHARE = 8


class Runtime:
    """What a page, an API or a test may ask of the engine; every method may be called from any thread.

    Methods that take a session id raise `SessionGone`; what cannot be done just now raises `Refused`.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        catalog: Catalog,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        place: Place | None = None,
    ) -> None:
        """`place` is where the model's work is done, by itself in this process."""
        self.catalog = catalog
        self._loaded = loaded
        self._settings = settings
        self._sessions = Sessions(
            limit=settings.max_sessions,
            idle_seconds=settings.idle_seconds,
            cache_bytes=settings.cache_bytes,
            clock=clock,
        )
        self._prefixes: PrefixRegistry | None = None
        if settings.prefix_cache != "off":
            limit = settings.cache_bytes // PREFIX_SHARE
            self._prefixes = PrefixRegistry(limit, everyone=settings.prefix_cache == "everyone")
        self._place = place or Here(loaded, settings.cache_bytes)
        self._scheduler = Scheduler(self._sessions, settings, clock, self._prefixes, serve=self._place.serve)

    @property
    def facts(self) -> ModelFacts:
        """Sizes and names of the loaded model."""
        return self._loaded.facts

    @property
    def offered(self) -> tuple[str, ...]:
        """Ids of the models that an experiment may run on."""
        return (self.facts.model_id,)

    def facts_of(self, session_id: str) -> ModelFacts:  # noqa: ARG002 - here every session has the same model
        """The facts of the session's model."""
        return self.facts

    @property
    def running(self) -> int:
        """Sessions with a run under way."""
        return self._sessions.running

    def parse(self, source: str | bytes | dict[str, Any]) -> Experiment:
        """An experiment that this program can run. Raises `ExperimentError`."""
        loaded = self.facts.model_id
        experiment = parse_experiment(source, models={*self.offered, *self.catalog.loadable_ids}, tools=TOOLS)
        if experiment.model != loaded:
            raise ExperimentError("model", said("not_offered", model=experiment.model, offered=repr(loaded)))
        return experiment

    # Sessions.

    def open(self, session_id: str | None = None) -> str:
        """Begin a session and return its id; under an id that is known, that session goes on. Raises `Busy`."""
        session, evicted = self._sessions.open(session_id)
        if evicted:
            self._scheduler.give_up(evicted)
        return session.id

    def close(self, session_id: str) -> None:
        """End a session: its run stops, what it waits for is cancelled, its cache goes back. Never raises or waits."""
        session = self._sessions.remove(session_id)
        if session:
            self._scheduler.give_up(session)

    def shut_down(self) -> None:
        """End the worker; nothing runs after this."""
        self._scheduler.close()

    # What one session does.

    def start(self, session_id: str, experiment: Experiment, *, branch: bool = False) -> Trace:
        """A new conversation in place of the old one, whose run is stopped and whose cache goes back.

        With `branch` what was there is kept as a branch; without, all branches go. No forward is run. Raises
        `ExperimentError` where the experiment asks for more than a limit allows.
        """
        session = self._sessions.get(session_id)
        check_new_tokens(experiment, self._settings.max_new_tokens)

        def renew() -> Trace:
            prefixes = self._prefixes.of(session.id) if self._prefixes else None
            conversation = self._place.begin(session, experiment, prefixes)
            if not branch:
                session.branches.clear()
            return _replace(session, conversation, keep=branch)

        with session.lock:
            if session.run:
                session.run.stop()
            return self._scheduler.call(session, renew)

    def trace(self, session_id: str) -> Trace | None:
        """What happened so far; None before the first `start`."""
        conversation = self._sessions.get(session_id).conversation
        return conversation.trace if conversation else None

    def prepare(self, session_id: str) -> Trace:
        """Render and prefill the first turn, where nothing was done yet, without making a token."""
        return self._change(session_id, lambda conversation: conversation.trace.events or conversation.advance())

    def step(self, session_id: str) -> Trace:
        """Make one token (before the first of a turn: render and prefill too) and return the trace.

        Raises `Busy` during a run.
        """
        session = self._sessions.get(session_id)
        return last_of(self._scheduler.begin(session, one_token=True).follow(), session.started.trace)

    def run(self, session_id: str) -> Iterator[Trace]:
        """Go on to the end and yield the newest trace after each token; frames a slow reader misses are skipped.

        The run stops when its last reader closes the iterator. A second reader follows the run under way.
        """
        yield from self._scheduler.begin(self._sessions.get(session_id)).follow()

    def stop(self, session_id: str) -> Trace | None:
        """Stop the run under way, if there is one, and return when it has ended: within the step that is running."""
        session = self._sessions.get(session_id)
        if session.run:
            session.run.stop()
            session.run.wait()
        return session.conversation.trace if session.conversation else None

    def back(self, session_id: str) -> Trace:
        """Take back the newest token of the turn. Raises `Busy` during a run."""
        return self._change(session_id, lambda conversation: conversation.back())

    def force(self, session_id: str, step: int, token_id: int) -> Trace:
        """Go back to `step` of the turn; the next step takes `token_id` there. Raises `Busy` during a run.

        Where another token stood there, the run as it was is kept as a branch.
        """
        session = self._sessions.get(session_id)

        def force(conversation: Conversation) -> None:
            left = conversation.trace
            conversation.force(step, token_id)
            stood = left.steps(max(0, left.turns - 1))[step : step + 1]
            if stood and stood[0].token_id != token_id:
                session.branches.keep(left)

        return self._change(session_id, force)

    def say(self, session_id: str, text: str) -> Trace:
        """Add a user turn to a finished conversation. Raises `Busy` during a run."""
        return self._change(session_id, lambda conversation: conversation.say(text))

    def probe(self, session_id: str, name: str, *, given: Trace | None = None, **arguments: Any) -> Any:
        """What the probe gives for the session's conversation, or of a given trace; during a run too, between steps."""
        if name not in PROBES:
            raise Refused(said("unknown_probe", name=name, known=", ".join(PROBES)))
        session = self._sessions.get(session_id)

        def item() -> Any:
            asked = self._place.replay(session, fed(given, arguments.get("turn"))) if given else session.started
            return self._place.ask(asked, name, arguments)

        return self._scheduler.call(session, item)

    # Branches and grids.

    def branches(self, session_id: str) -> tuple[Branch, ...]:
        """The runs that this session has left for another way, oldest first."""
        return tuple(self._sessions.get(session_id).branches)

    def take(self, session_id: str, branch_id: int) -> Trace:
        """Go back to a branch; what was there is kept in its place. Raises `Busy` during a run.

        No forward is run: the next step fills the cache again.
        """
        session = self._sessions.get(session_id)

        def item() -> Trace:
            trace = session.branches.remove(branch_id).trace
            return _replace(session, self._place.resume(session, trace), keep=True)

        return self._scheduler.change(session, item)

    def probe_branch(self, session_id: str, branch_id: int, name: str, **arguments: Any) -> Any:
        """What a probe gives for a branch; it has no cache, so the probe computes what it needs."""
        session = self._sessions.get(session_id)

        def item() -> Any:
            trace = session.branches.find(branch_id).trace
            return self._place.ask(self._place.resume(session, trace), name, arguments)

        return self._scheduler.call(session, item)

    def grid(
        self, session_id: str, experiment: Experiment, overrides: Sequence[Mapping[str, Any]]
    ) -> Iterator[GridResult]:
        """One prompt under several settings of `sampling`; yields what is known so far, to the end.

        It is a run of the session: Stop ends it, it gives way to other visitors after each forward, and it ends when
        its reader leaves. Raises `ExperimentError`, `Busy`.
        """
        session = self._sessions.get(session_id)
        check_new_tokens(experiment, self._settings.max_new_tokens)
        work = self._scheduler.change(session, lambda: self._place.grid(experiment, overrides))
        yield from self._scheduler.begin_work(session, work).follow()

    def complete(self, experiment: Experiment) -> Trace:
        """Run an experiment from start to end, as a visitor of its own, and return its trace."""
        with self._visitor() as session_id:
            return self._complete(session_id, experiment)

    def ask(self, source: dict[str, Any], name: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Run an experiment as a visitor of its own, or take a trace's ids, and ask one probe about it.

        Both come decoded from JSON. Returns the arguments with turn and position filled in, and the answer. Raises
        `ExperimentError` for what is not allowed or not there, `Refused` for what the model cannot show.
        """
        trace = parse_trace(source, models={*self.offered, *self.catalog.loadable_ids}) if is_trace(source) else None
        experiment = self.parse(trace.experiment.model_dump() if trace else source)
        check(PROBES, name, arguments, self.facts)
        with self._visitor() as session_id:
            session = self._sessions.get(session_id)
            if trace is None:
                self._complete(session_id, experiment)
            else:
                session.conversation = self._place.replay(session, trace)
            return self._scheduler.call(session, lambda: self._place.answer(session.started, name, arguments))

    # How it is done.

    @contextmanager
    def _visitor(self) -> Iterator[str]:
        """A session for the time of the `with` block."""
        session_id = self.open()
        try:
            yield session_id
        finally:
            self.close(session_id)

    def _complete(self, session_id: str, experiment: Experiment) -> Trace:
        trace = self.start(session_id, experiment)
        return last_of(self.run(session_id), trace)

    def _change(self, session_id: str, change: Callable[[Conversation], object]) -> Trace:
        """Change the session's conversation between runs and return its new trace."""
        session = self._sessions.get(session_id)

        def item() -> Trace:
            change(session.started)
            return session.started.trace

        return self._scheduler.change(session, item)


def _replace(session: Session, conversation: Conversation, *, keep: bool) -> Trace:
    """Put a conversation in the place of the session's own, which may be kept as a branch; its cache goes back."""
    if session.conversation:
        if keep:
            session.branches.keep(session.conversation.trace)
        session.conversation.release()
    session.conversation = conversation
    return conversation.trace
