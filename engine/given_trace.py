"""A trace that is given from outside: read, checked, and made a conversation again without drawing anything.

What a probe needs of a trace are its ids. They are fed to the model as they stand; the rest of it is kept.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.experiment import ExperimentError, parse_experiment
from engine.tools.registry import TOOLS
from engine.trace import Trace
from engine.trace_check import check_ids, check_order, check_sizes
from engine.trace_json import trace_from_json

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.model import LoadedModel


def is_trace(data: Any) -> bool:
    """True for a decoded trace, False for an experiment."""
    return isinstance(data, dict) and "events" in data


def parse_trace(data: dict[str, Any], *, models: Collection[str]) -> Trace:
    """A decoded trace of a possible model, whose turns and steps follow one another. Raises `ExperimentError`."""
    try:
        parse_experiment(data.get("experiment", {}), models=models, tools=TOOLS)
    except ExperimentError as error:
        raise ExperimentError(f"experiment.{error.path}".rstrip("."), error.message) from None
    trace = trace_from_json(data)
    check_sizes(trace.facts)
    check_order(trace)
    return trace


def fed(trace: Trace, turn: int | None) -> Trace:
    """The trace, of whose turn (None: the newest) a probe may be asked.

    Raises `ExperimentError`, the turn's own, where it ended before the model was fed anything of it: of such a turn
    nothing is bounded.
    """
    turn = trace.turns - 1 if turn is None else turn
    stopped = trace.stopped(turn)
    if stopped is not None and trace.unfed(turn):
        field, message = stopped.evidence.get("field", ""), stopped.evidence.get("message", "")
        raise ExperimentError(str(field), message if isinstance(message, str) else str(message))
    return trace


def replayed(loaded: "LoadedModel", trace: Trace, *, cache_budget: int | None = None) -> "Conversation":
    """A conversation that stands where the trace ends. Its probes compute what they need; it cannot go on.

    Raises `ExperimentError` for a trace that this model cannot have made.
    """
    from engine.conversation import Conversation

    check_ids(trace, loaded.facts, cache_budget)
    conversation = Conversation(loaded, trace.experiment)
    conversation.trace = replace(trace, facts=loaded.facts)  # what is computed is computed by this model
    return conversation
