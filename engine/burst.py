"""A burst: the work of one call on a GPU that is lent for seconds. What happened goes in, what happens comes out.

Nothing else is shared with whoever calls: these functions run in another process, everything that goes in or out is
pickled, and what they change in memory is lost. A run is told by its trace: its ids fill the cache, its draws bring the
random generator to where it stood. So the next token is the one that the run would have drawn in one process.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine import asking, kv_cache
from engine.answers.grid import GridResult
from engine.conversation import Conversation
from engine.decode import Turn
from engine.experiment import Experiment, ExperimentError
from engine.given_trace import replayed
from engine.model import LoadedModel
from engine.probes.grid import Grid
from engine.probes.table import PROBES
from engine.refusals import Refused
from engine.stages.forward import forward
from engine.stages.inputs import make_inputs
from engine.stages.snapshots import NoCandidate
from engine.trace import Event, Prefilled, Stepped, Stopped, ToolCalled, Trace


@dataclass(frozen=True, eq=False)
class Piece:
    """What one piece of work gave, and whether it is the last of its burst."""

    events: tuple[Event, ...]
    last: bool


#: Of a burst that found nothing to do.
NOTHING = Piece((), last=True)


@dataclass(frozen=True)
class Failure:
    """What was refused, as a plain value: of an exception only its name would reach the caller."""

    message: str
    field: str | None = None  # of an `ExperimentError`

    @classmethod
    def of(cls, error: ExperimentError | Refused | NoCandidate) -> "Failure":
        if isinstance(error, ExperimentError):
            return cls(error.message, error.path)
        return cls(error.args[0], "step" if isinstance(error, NoCandidate) else None)

    def error(self) -> ExperimentError | Refused:
        """The exception again."""
        return Refused(self.message) if self.field is None else ExperimentError(self.field, self.message)


def burst(
    loaded: LoadedModel,
    trace: Trace,
    *,
    tokens: int,
    seconds: float,
    cache_budget: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Piece]:
    """Go on with a run from where its trace ends, and yield what each piece of work gives.

    It ends after `tokens` new tokens (0: after the first piece, which only renders and prefills), once `seconds` have
    passed, or where the run has ended.
    """
    ends = clock() + seconds
    conversation = recall(loaded, trace, cache_budget)
    made, last = 0, False
    while not last and (events := conversation.advance()):
        made += any(isinstance(event, Stepped | Stopped | ToolCalled) for event in events)
        last = made >= tokens or clock() >= ends or conversation.finished
        yield Piece(events, last)


def recall(loaded: LoadedModel, trace: Trace, cache_budget: int | None) -> Conversation:
    """A conversation that stands where the trace of an own run ends, with the cache that it had there.

    The forwards are those of the run for the prompt, and one for all of the answer: so what comes next is fed, reused
    and counted as if the run had never been interrupted.
    """
    events = trace.events
    prefills = [at for at, event in enumerate(events, 1) if isinstance(event, Prefilled)]
    begun = prefills[-1] if prefills else 0
    conversation = Conversation.resumed(loaded, replace(trace, events=events[:begun]), cache_budget=cache_budget)
    turn = conversation.turn
    if turn is not None:
        rendered = conversation.trace.rendered(turn.index)
        if turn.window is None and rendered and rendered.reused:
            turn.cache = kv_cache.new_cache(loaded.model.config)
            _feed(loaded, turn, turn.prompt_ids[: rendered.reused])
        turn.prefill()
    conversation.absorb(events[begun:])
    if conversation.turn is turn and turn is not None:
        if trace.experiment.mistake == "history_reencoded" and len(turn.answer) > 1:
            turn.cache = None  # that mistake computes without one
        elif turn.window is None:
            _feed(loaded, turn, turn.answer[:-1])
        elif turn.answer:  # the oldest of the prompt may have left by now
            turn.cache = None
            turn.refill()
    return conversation


def _feed(loaded: LoadedModel, turn: Turn, ids: Sequence[int]) -> None:
    if ids and turn.cache is not None:
        inputs = make_inputs(ids, past=kv_cache.tokens(turn.cache), device=loaded.device)
        forward(loaded.model, inputs, turn.cache)


def ask(
    loaded: LoadedModel,
    trace: Trace,
    name: str,
    arguments: Mapping[str, Any],
    *,
    foreign: bool = False,
    checked: bool = True,
    cache_budget: int | None = None,
) -> tuple[dict[str, Any], Any] | Failure:
    """What a probe shows of a run, with its arguments filled in.

    `foreign` is a trace from outside, of which only the ids are taken; arguments that are not `checked` are first.
    """
    try:
        if foreign:
            conversation = replayed(loaded, trace, cache_budget=cache_budget)
        else:
            conversation = recall(loaded, trace, cache_budget)
        if checked:
            return dict(arguments), PROBES[name](conversation, **arguments)
        return asking.answer(PROBES, conversation, name, arguments)
    except (ExperimentError, Refused, NoCandidate) as error:
        return Failure.of(error)


def grid(
    loaded: LoadedModel,
    experiment: Experiment,
    overrides: Sequence[Mapping[str, Any]],
    *,
    seconds: float,
    cache_budget: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[GridResult]:
    """Compute a grid and yield what is known after each piece of work, until it is done or `seconds` have passed."""
    ends = clock() + seconds
    work = Grid(loaded, experiment, overrides, cache_budget=cache_budget)
    more = True
    while more and clock() < ends:
        more = work.advance()
        yield work.result()
