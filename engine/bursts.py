"""The model on a GPU that is lent for seconds at a time (ZeroGPU): each call is a burst in a process of its own.

This side holds the conversations and never runs the model. It sends a trace, takes the events that come back one by
one, and stands where they end: so stopping, going back and choosing work between two tokens as they do elsewhere.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Protocol, Self

import torch

from engine import burst as far
from engine.answers.grid import GridResult
from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.prefix_registry import VisitorPrefixes
from engine.probes.grid import Grid
from engine.refusals import Busy
from engine.said import said
from engine.sessions import Session, Work
from engine.trace import Event, Trace
from engine.trace_check import check_ids
from engine.visitor_threads import VisitorThreads
from engine.worker import Serves

#: Of one call: new tokens at most, and seconds. The lender ends a call after 60 seconds, with what takes the weights
#: to the GPU counted in.
MOST_TOKENS = 256
SECONDS = 40
#: The same for a single token, a prefill or a probe: who asks for less waits less, and has it counted less.
FEW_SECONDS = 10
#: To take the weights to the GPU and to end in good order.
MARGIN = 10

WAITS = said("burst_waits")


class Gpu(Protocol):
    """The lender's decorator: `duration` tells from a call's arguments for how many seconds it wants the GPU."""

    def __call__(self, *, duration: Callable[..., int]) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...


class Bursts:
    """A `Place`. To be made before the page is launched: the lender looks then for what was decorated."""

    def __init__(self, loaded: LoadedModel, cache_budget: int, gpu: Gpu) -> None:
        # What is done on this side, on ids and texts, needs no GPU, and this process has none.
        self.here = replace(loaded, device=torch.device("cpu"))
        self.budget = cache_budget

        def more(trace: Trace, tokens: int, seconds: int) -> Iterator[far.Piece]:
            yield from far.burst(loaded, trace, tokens=tokens, seconds=seconds, cache_budget=cache_budget)

        def probe(trace: Trace, name: str, arguments: dict[str, Any], foreign: bool, checked: bool) -> Any:
            return far.ask(loaded, trace, name, arguments, foreign=foreign, checked=checked, cache_budget=cache_budget)

        def cells(experiment: Experiment, overrides: list[dict[str, Any]], seconds: int) -> Iterator[GridResult]:
            yield from far.grid(loaded, experiment, overrides, seconds=seconds, cache_budget=cache_budget)

        self.more = gpu(duration=lambda trace, tokens, seconds: seconds + MARGIN)(more)  # noqa: ARG005
        self._probe = gpu(duration=lambda *_: FEW_SECONDS + MARGIN)(probe)
        self.cells = gpu(duration=lambda experiment, overrides, seconds: seconds + MARGIN)(cells)  # noqa: ARG005

    def serve(self, chore: Callable[[], None]) -> Serves:
        return VisitorThreads(chore)

    def begin(
        self,
        session: Session,
        experiment: Experiment,
        prefixes: VisitorPrefixes | None,  # noqa: ARG002 - caches of system prompts cannot be kept between calls
    ) -> Conversation:
        return BurstConversation(self.here, experiment, cache_budget=self.budget).on(self, session)

    def resume(self, session: Session, trace: Trace) -> Conversation:
        return BurstConversation.resumed(self.here, trace, cache_budget=self.budget).on(self, session)

    def replay(self, session: Session, trace: Trace) -> Conversation:
        check_ids(trace, self.here.facts, self.budget)
        made = BurstConversation(self.here, trace.experiment).on(self, session)
        made.trace, made.foreign = trace, True
        return made

    def ask(self, conversation: Conversation, name: str, arguments: Mapping[str, Any]) -> Any:
        return self._asked(conversation, name, arguments, checked=True)[1]

    def answer(self, conversation: Conversation, name: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        return self._asked(conversation, name, arguments, checked=False)

    def grid(self, experiment: Experiment, overrides: Sequence[Mapping[str, Any]]) -> Work:
        return BurstGrid(self, experiment, overrides)

    def _asked(
        self, conversation: Conversation, name: str, arguments: Mapping[str, Any], *, checked: bool
    ) -> tuple[dict[str, Any], Any]:
        assert isinstance(conversation, BurstConversation)
        if conversation.under_way:
            raise Busy(WAITS)
        found = self._probe(conversation.trace, name, dict(arguments), conversation.foreign, checked)
        if isinstance(found, far.Failure):
            raise found.error()
        asked, result = found
        return asked, result


class BurstConversation(Conversation):
    """A conversation whose next piece of work comes out of a burst, which goes on while more is wanted."""

    foreign = False  # a trace from outside, of which only the ids are known
    _place: Bursts
    _session: Session
    _burst: Generator[far.Piece] | None = None

    def on(self, place: Bursts, session: Session) -> Self:
        self._place, self._session = place, session
        return self

    @property
    def under_way(self) -> bool:
        """True while a burst computes ahead."""
        return self._burst is not None

    def advance(self) -> tuple[Event, ...]:
        """The next piece of work, out of the burst under way or a new one.

        Raises `Refused` where the GPU cannot be had (any more); what was made so far stays.
        """
        if not self._opened():
            return ()
        self._burst = self._burst or self._place.more(self.trace, *self._wanted)
        with ExitStack() as at_the_end:
            at_the_end.callback(self._leave)
            piece = next(self._burst, far.NOTHING)
            self.absorb(piece.events)
            if not piece.last:
                at_the_end.pop_all()
        return piece.events

    def cancel(self, **evidence: object) -> None:
        self._leave()
        super().cancel(**evidence)

    def release(self) -> None:
        self._leave()
        super().release()

    @property
    def _wanted(self) -> tuple[int, int]:
        """New tokens and seconds of a burst for what the session does: a run, a single step, a look at the prompt."""
        if not self._session.running:
            return 0, FEW_SECONDS
        return (1, FEW_SECONDS) if self._session.one_token else (MOST_TOKENS, SECONDS)

    def _leave(self) -> None:
        """End the burst under way: the token that it is computing is the last."""
        burst, self._burst = self._burst, None
        if burst is not None:
            burst.close()


class BurstGrid:
    """`Work` whose results come out of one burst."""

    cache_bytes = 0

    def __init__(self, place: Bursts, experiment: Experiment, overrides: Sequence[Mapping[str, Any]]) -> None:
        """No model work. Raises `ExperimentError` as `Grid` does."""
        self._result = Grid(place.here, experiment, overrides, cache_budget=place.budget).result()
        self._burst = place.cells(experiment, [dict(own) for own in overrides], SECONDS)

    def advance(self) -> bool:
        newer = next(self._burst, None)
        self._result = newer or self._result
        return newer is not None and not newer.done

    def result(self) -> GridResult:
        return self._result

    def release(self) -> None:
        self._burst.close()
