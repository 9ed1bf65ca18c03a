"""A trace that comes from outside: read, checked, and made a conversation again without drawing anything.

What a probe needs of a trace are its ids. They are fed to the model as they stand; the rest of the record is kept.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from engine.experiment import ExperimentError, parse_experiment
from engine.facts import ModelFacts
from engine.tools.registry import TOOLS
from engine.trace import Rendered, Stepped, Trace
from engine.trace_json import trace_from_json

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.model import LoadedModel


def is_trace(data: Any) -> bool:
    """True for a decoded trace, False for an experiment."""
    return isinstance(data, dict) and "events" in data


def parse_trace(data: dict[str, Any], *, models: Collection[str]) -> Trace:
    """A decoded trace whose turns and steps follow one another. Raises `ExperimentError`."""
    try:
        parse_experiment(data.get("experiment", {}), models=models, tools=TOOLS)
    except ExperimentError as error:
        raise ExperimentError(f"experiment.{error.path}".rstrip("."), error.message) from None
    try:
        trace = trace_from_json(data)
    except KeyError as error:
        raise ExperimentError("events", f"this trace lacks {error}") from None
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ExperimentError("events", f"this is no trace: {str(error)[:200]}") from None
    prompt, steps, turns = 0, 0, 0
    for index, event in enumerate(trace.events):
        path = f"events[{index}]"
        if isinstance(event, Rendered):
            prompt, steps = event.token_ids.size, 0
            if event.turn != turns or event.token_ids.ndim != 1 or not prompt:
                raise ExperimentError(path, f"the prompt of turn {turns}, a list of token ids, is wanted here")
            turns += 1
        elif isinstance(event, Stepped):
            if (event.turn, event.step, event.position) != (turns - 1, steps, prompt + steps):
                raise ExperimentError(path, f"step {steps} of turn {turns - 1} is wanted here")
            steps += 1
    return trace


def check_ids(trace: Trace, facts: ModelFacts, cache_budget: int | None = None) -> None:
    """Raise `ExperimentError` for ids that the model does not have, or more of them than it can hold."""
    for turn in range(trace.turns):
        rendered = trace.rendered(turn)
        ids: list[Any] = rendered.token_ids.tolist() if rendered else []
        ids += [step.token_id for step in trace.steps(turn)]
        for token_id in ids:
            if type(token_id) is not int or not 0 <= token_id < facts.vocab_rows:
                raise ExperimentError("events", f"token ids of this model go up to {facts.vocab_rows - 1}")
        truncated = trace.truncated(turn)
        offset = truncated.offset if truncated else 0
        if type(offset) is not int or not 0 <= offset <= facts.context:
            raise ExperimentError("events", f"turn {turn} begins beyond the {facts.context} positions of this model")
        if rendered and (type(rendered.reused) is not int or not 0 <= rendered.reused <= rendered.token_ids.size):
            raise ExperimentError("events", f"turn {turn} reuses more positions than its prompt has")
        if len(ids) > facts.context:
            raise ExperimentError("events", f"turn {turn} has {len(ids)} tokens, the context holds {facts.context}")
        if cache_budget is not None and facts.kv_bytes(len(ids)) > cache_budget:
            needed = facts.kv_bytes(len(ids))
            raise ExperimentError(
                "events", f"a KV cache of turn {turn} takes {needed} bytes, {cache_budget} are allowed"
            )


def replayed(loaded: "LoadedModel", trace: Trace, *, cache_budget: int | None = None) -> "Conversation":
    """A conversation that stands where the trace ends. Its probes compute what they need; it cannot go on.

    Raises `ExperimentError` for a trace that this model cannot have made.
    """
    from engine.conversation import Conversation

    check_ids(trace, loaded.facts, cache_budget)
    conversation = Conversation(loaded, trace.experiment)
    conversation.trace = trace
    return conversation
