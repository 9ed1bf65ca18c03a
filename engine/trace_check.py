"""Whether a trace that comes from outside hangs together, so that what looks at it may rely on it."""

from typing import Any

import numpy.typing as npt

from engine.experiment import ExperimentError
from engine.facts import ModelFacts
from engine.trace import Prefilled, Rendered, Stepped, Trace
from engine.truncated import Truncated

#: What is known of each forward.
FED = frozenset({"input_ids", "attention_mask", "position_ids", "logits", "keys", "values"})

#: Layers, and heads of a layer, at most: pages count through them. The largest models have some hundred.
MOST_PARTS = 1_000


def check_order(trace: Trace) -> None:
    """Raise `ExperimentError` where turns and steps do not follow one another."""
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


def check_whole(trace: Trace) -> None:
    """Raise `ExperimentError` where the parts of a trace contradict one another."""
    facts = trace.facts
    if facts.model_id != trace.experiment.model:
        raise ExperimentError("experiment.model", f"this trace is of {facts.model_id[:60]!r}")
    sizes = (facts.layers, facts.heads, facts.kv_heads, facts.head_dim, facts.hidden_size, facts.vocab_rows)
    if min(*sizes, facts.context, facts.itemsize) < 1 or facts.layers != len(facts.layer_kinds):
        raise ExperimentError("facts", "these sizes are those of no model")
    if max(facts.layers, facts.heads) > MOST_PARTS:
        raise ExperimentError("facts", f"a model here has at most {MOST_PARTS:,} layers, and heads in each")
    if facts.heads % facts.kv_heads:
        raise ExperimentError("facts", "heads do not share key/value heads evenly")
    check_order(trace)
    check_ids(trace, facts)
    newest = -1
    for index, event in enumerate(trace.events):
        path = f"events[{index}]"
        # A prompt is cut before it is rendered, so what left belongs to the turn that comes.
        if event.turn not in (newest, newest + 1) or event.turn < 0:
            raise ExperimentError(path, f"an event of turn {newest} is wanted here")
        if isinstance(event, Rendered):
            newest = event.turn
            _check_rendered(event, path)
        elif isinstance(event, Prefilled):
            _check_fed(event.shapes, path)
        elif isinstance(event, Stepped):
            _check_step(event, facts, path)
        elif isinstance(event, Truncated) and any(not 0 <= one.kept <= one.tokens for one in event.portions):
            raise ExperimentError(path, "more of a message stays than there is")


def _check_rendered(event: Rendered, path: str) -> None:
    count = event.token_ids.size
    same(path, "token_ids", count, event.pieces, event.token_bytes)
    shaped(path, "span_index", event.span_index, (count,))
    shaped(path, "special", event.special, (count,))
    if event.span_index.min() < -1 or event.span_index.max() >= len(event.spans):
        raise ExperimentError(f"{path}.span_index", f"there are {len(event.spans)} spans")
    if any(not 0 <= span.start <= span.end <= len(event.text) for span in event.spans):
        raise ExperimentError(f"{path}.spans", f"the text has {len(event.text)} characters")
    if event.prefix is not None and not 0 <= event.prefix.common <= event.prefix.system <= count:
        raise ExperimentError(f"{path}.prefix", f"the prompt has {count} positions")


def _check_step(step: Stepped, facts: ModelFacts, path: str) -> None:
    stages, count = len(step.stages), step.candidate_ids.size
    if not stages or not count:
        raise ExperimentError(path, "a step has stages and candidates")
    shaped(path, "candidate_ids", step.candidate_ids, (count,))
    if step.candidate_ids.min() < 0 or step.candidate_ids.max() >= facts.vocab_rows:
        raise ExperimentError(f"{path}.candidate_ids", f"token ids of this model go up to {facts.vocab_rows - 1}")
    same(path, "candidate_ids", count, step.candidate_bytes)
    shaped(path, "logits", step.logits, (stages, count))
    shaped(path, "probabilities", step.probabilities, (stages, count))
    weights = step.probabilities
    if not ((weights >= 0) & (weights <= 1.001)).all() or not (step.logits < float("inf")).all():
        raise ExperimentError(path, "these are no probabilities and logits")
    _check_fed(step.shapes, path)


def _check_fed(shapes: dict[str, tuple[int, ...]], path: str) -> None:
    missing = sorted(FED - set(shapes))
    if missing:
        raise ExperimentError(f"{path}.shapes", f"{missing[0]!r} is missing")
    if any(not shape or min(shape) < 0 for shape in shapes.values()):
        raise ExperimentError(f"{path}.shapes", "each shape is a list of sizes")


def same(path: str, name: str, count: int, *listed: tuple[Any, ...]) -> None:
    """Raise `ExperimentError` where a list has another length than what it goes with."""
    if any(len(items) != count for items in listed):
        raise ExperimentError(path, f"what goes with the {count} {name} has another length")


def shaped(path: str, name: str, array: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    """Raise `ExperimentError` where an array has another shape."""
    if array.shape != shape:
        raise ExperimentError(f"{path}.{name}", f"{list(shape)} is wanted, got {list(array.shape)}")
