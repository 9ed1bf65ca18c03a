"""Whether a trace that comes from outside hangs together, so that what looks at it may rely on it."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from engine.experiment import ExperimentError
from engine.facts import ModelFacts
from engine.said import said
from engine.trace import Prefilled, Rendered, Stepped, Stopped, ToolCalled, Trace
from engine.truncated import Truncated
from engine.values import TRANSFORMERS_ORDER

#: What is known of each forward, and of the cache after it where there is one.
FED = frozenset({"input_ids", "attention_mask", "position_ids", "logits"})
CACHED = frozenset({"keys", "values"})

#: What a token's logits go through.
STAGES = ("logits", *TRANSFORMERS_ORDER)

#: What the end of a turn is told with, by its reason or by the limit that was reached.
TOLD: dict[str | None, dict[str, type | tuple[type, ...]]] = {
    "error": {"field": str, "message": str},
    "stop_string": {"string": str},
    "tool_limit": {"rounds": int},
    "run_seconds": {"seconds": (int, float)},
    "max_new_tokens": {"max_new_tokens": int},
    "context": {"context": int},
}

#: The second end that a turn may have, after the first.
ENDS_AGAIN = frozenset({("tool_call", "cancelled"), ("tool_call", "error")})

#: Layers, and heads of a layer, at most: pages count through them. The largest models have some hundred.
MOST_PARTS = 1_000

#: Numbers that the end of a turn is told with.
MOST_SAID = 2**63

#: Bytes of a token, and of all that a turn's prompt is shown as: pages are made of every one, many times over.
MOST_TOKEN = 1_000
MOST_PROMPT = 1_000_000

#: Tool calls of one answer: sixteen that are run, and one that says that no more are (`engine/tools/calls.py`).
MOST_CALLS = 17


def check_order(trace: Trace) -> None:
    """Raise `ExperimentError` where turns and steps do not follow one another, or an ended turn ends again."""
    prompt, steps, turns = 0, 0, 0
    ended: dict[int, str] = {}
    for index, event in enumerate(trace.events):
        path = f"events[{index}]"
        if isinstance(event, Rendered):
            prompt, steps = event.token_ids.size, 0
            some = prompt or trace.unfed(turns)
            if event.turn != turns or event.token_ids.ndim != 1 or not some:
                raise ExperimentError(path, said("prompt_of_turn", turn=turns))
            turns += 1
        elif isinstance(event, Stepped):
            if (event.turn, event.step, event.position) != (turns - 1, steps, prompt + steps):
                raise ExperimentError(path, said("step_of_turn", step=steps, turn=turns - 1))
            steps += 1
        elif isinstance(event, Stopped):
            # What follows a call can be cancelled, or fail; a run that goes on takes the end back.
            if event.turn in ended and (ended[event.turn], event.reason) not in ENDS_AGAIN:
                raise ExperimentError(path, said("turn_ended", turn=event.turn))
            ended[event.turn] = event.reason


def check_ids(trace: Trace, facts: ModelFacts, cache_budget: int | None = None) -> None:
    """Raise `ExperimentError` for ids that the model does not have, or more of them than it can hold."""
    for turn in range(trace.turns):
        rendered = trace.rendered(turn)
        ids: list[Any] = rendered.token_ids.tolist() if rendered else []
        ids += [step.token_id for step in trace.steps(turn)]
        for token_id in ids:
            if type(token_id) is not int or not 0 <= token_id < facts.vocab_rows:
                raise ExperimentError("events", said("ids_up_to", last=facts.vocab_rows - 1))
        offset = trace.offset(turn)
        if type(offset) is not int or not 0 <= offset <= facts.context:
            raise ExperimentError("events", said("turn_beyond_context", turn=turn, context=facts.context))
        if rendered and (type(rendered.reused) is not int or not 0 <= rendered.reused <= rendered.token_ids.size):
            raise ExperimentError("events", said("turn_reuses_more", turn=turn))
        if trace.unfed(turn):  # the reason for its error may be just that
            continue
        if len(ids) > facts.context:
            raise ExperimentError("events", said("turn_over_context", turn=turn, count=len(ids), context=facts.context))
        if cache_budget is not None and facts.kv_bytes(len(ids)) > cache_budget:
            needed = facts.kv_bytes(len(ids))
            raise ExperimentError("events", said("turn_cache_too_big", turn=turn, needed=needed, allowed=cache_budget))


def check_sizes(facts: ModelFacts) -> None:
    """Raise `ExperimentError` for sizes that no model has, or more parts than are counted through."""
    sizes = (facts.layers, facts.heads, facts.kv_heads, facts.head_dim, facts.hidden_size, facts.vocab_rows)
    if min(*sizes, facts.context, facts.itemsize) < 1 or facts.layers != len(facts.layer_kinds):
        raise ExperimentError("facts", said("sizes_of_no_model"))
    if max(facts.layers, facts.heads) > MOST_PARTS:
        raise ExperimentError("facts", said("most_parts", most=MOST_PARTS))
    if facts.heads % facts.kv_heads:
        raise ExperimentError("facts", said("heads_uneven"))


def check_whole(trace: Trace) -> None:
    """Raise `ExperimentError` where the parts of a trace contradict one another."""
    facts = trace.facts
    if facts.model_id != trace.experiment.model:
        raise ExperimentError("experiment.model", said("trace_of_model", model=facts.model_id[:60]))
    check_sizes(facts)
    check_order(trace)
    check_ids(trace, facts)
    cached = CACHED if {"full", "sliding"} & {*facts.layer_kinds} else frozenset()
    cacheless = trace.experiment.mistake == "history_reencoded"
    newest, calls = -1, 0
    for index, event in enumerate(trace.events):
        path = f"events[{index}]"
        # A prompt is cut before it is rendered, so what left belongs to the turn that comes.
        if event.turn not in (newest, newest + 1) or event.turn < 0:
            raise ExperimentError(path, said("event_of_turn", turn=newest))
        if isinstance(event, Rendered):
            newest, calls = event.turn, 0
            _check_rendered(event, path)
        elif isinstance(event, ToolCalled):
            calls += 1
            if calls > MOST_CALLS:
                raise ExperimentError(path, said("calls_of_turn", most=MOST_CALLS))
        elif isinstance(event, Prefilled):
            _check_fed(event.shapes, FED | cached, path)
        elif isinstance(event, Stepped):
            _check_step(event, facts, path)
            _check_fed(event.shapes, FED if cacheless else FED | cached, path)
        elif isinstance(event, Stopped):
            _check_stopped(event, len(trace.steps(event.turn)), path)
        elif isinstance(event, Truncated) and any(not 0 <= one.kept <= one.tokens for one in event.portions):
            raise ExperimentError(path, said("more_stays"))


def _check_rendered(event: Rendered, path: str) -> None:
    count = event.token_ids.size
    same(path, "token_ids", count, event.pieces, event.token_bytes)
    _check_tokens(event.token_bytes, f"{path}.token_bytes")
    _check_tokens([piece.encode("utf-8", "replace") for piece in event.pieces], f"{path}.pieces")
    size = len(event.text.encode("utf-8", "replace"))
    if count and size > MOST_PROMPT:
        raise ExperimentError(f"{path}.text", said("prompt_shown_too_long", count=size, most=MOST_PROMPT))
    shaped(path, "span_index", event.span_index, (count,))
    shaped(path, "special", event.special, (count,))
    if count and (event.span_index.min() < -1 or event.span_index.max() >= len(event.spans)):
        raise ExperimentError(f"{path}.span_index", said("spans_there", count=len(event.spans)))
    if any(not 0 <= span.start <= span.end <= len(event.text) for span in event.spans):
        raise ExperimentError(f"{path}.spans", said("characters_there", count=len(event.text)))
    if event.prefix is not None and not 0 <= event.prefix.common <= event.prefix.system <= count:
        raise ExperimentError(f"{path}.prefix", said("positions_there", count=count))


def _check_step(step: Stepped, facts: ModelFacts, path: str) -> None:
    stages, count = len(step.stages), step.candidate_ids.size
    if not stages or not count:
        raise ExperimentError(path, said("step_has_stages"))
    for name in (*(stage.name for stage in step.stages), step.eos.cut_by if step.eos else None):
        if name is not None and name not in STAGES:
            raise ExperimentError(f"{path}.stages", said("unknown_here", name=name[:60], known=", ".join(STAGES)))
    shaped(path, "candidate_ids", step.candidate_ids, (count,))
    if step.candidate_ids.min() < 0 or step.candidate_ids.max() >= facts.vocab_rows:
        raise ExperimentError(f"{path}.candidate_ids", said("ids_up_to", last=facts.vocab_rows - 1))
    same(path, "candidate_ids", count, step.candidate_bytes)
    _check_tokens((*step.candidate_bytes, step.token_bytes), f"{path}.candidate_bytes")
    shaped(path, "logits", step.logits, (stages, count))
    shaped(path, "probabilities", step.probabilities, (stages, count))
    weights = step.probabilities
    if not ((weights >= 0) & (weights <= 1.001)).all() or not (step.logits < float("inf")).all():
        raise ExperimentError(path, said("no_probabilities"))


def _check_tokens(tokens: Sequence[bytes], path: str) -> None:
    longest, size = max(map(len, tokens), default=0), sum(map(len, tokens))
    if longest > MOST_TOKEN:
        raise ExperimentError(path, said("token_too_long", count=longest, most=MOST_TOKEN))
    if size > MOST_PROMPT:
        raise ExperimentError(path, said("prompt_shown_too_long", count=size, most=MOST_PROMPT))


def _check_stopped(event: Stopped, steps: int, path: str) -> None:
    """A page tells of an end what decided it."""
    evidence, limit = event.evidence, event.evidence.get("limit")
    known = ("max_new_tokens", "context") if event.reason == "length" else (None, "rounds", "run_seconds")
    if limit not in known or not isinstance(evidence.get("also", []), list):
        raise ExperimentError(f"{path}.evidence", said("no_such_end", reason=event.reason))
    if event.reason == "no_candidate" and evidence.get("stage") not in STAGES:
        raise ExperimentError(f"{path}.evidence", said("no_such_end", reason=event.reason))
    for name, kind in (TOLD.get(event.reason, {}) | TOLD.get(limit, {})).items():
        value = evidence.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ExperimentError(f"{path}.evidence", said("name_missing", name=name))
        if isinstance(value, int | float) and not 0 <= value <= MOST_SAID:
            raise ExperimentError(f"{path}.evidence", said("no_such_end", reason=event.reason))
    if event.reason in ("eos", "grammar_end", "stop_string") and not steps:
        raise ExperimentError(path, said("end_without_token", reason=event.reason))


def _check_fed(shapes: dict[str, tuple[int, ...]], wanted: frozenset[str], path: str) -> None:
    missing = sorted(wanted - set(shapes))
    if missing:
        raise ExperimentError(f"{path}.shapes", said("name_missing", name=missing[0]))
    if any(not shape or min(shape) < 0 for shape in shapes.values()):
        raise ExperimentError(f"{path}.shapes", said("shapes_of_sizes"))


def same(path: str, name: str, count: int, *listed: tuple[Any, ...]) -> None:
    """Raise `ExperimentError` where a list has another length than what it goes with."""
    if any(len(items) != count for items in listed):
        raise ExperimentError(path, said("other_length", count=count, name=name))


def shaped(path: str, name: str, array: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    """Raise `ExperimentError` where an array has another shape."""
    if array.shape != shape:
        raise ExperimentError(f"{path}.{name}", said("other_shape", shape=list(shape), got=list(array.shape)))
