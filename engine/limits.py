"""What a model can be asked for: ids it has, prompts that fit, caches within a budget."""

import sys

from engine.experiment import Experiment, ExperimentError
from engine.facts import ModelFacts
from engine.said import said

#: Where nothing limits the positions.
ENDLESS = sys.maxsize


def check_id(token_id: int, facts: ModelFacts, path: str) -> None:
    """Raise `ExperimentError` for an id that the model has no row for."""
    if not 0 <= token_id < facts.vocab_rows:
        raise ExperimentError(path, said("no_such_id", last=facts.vocab_rows - 1, got=token_id))


def no_such(part: str, count: int, got: int) -> ExperimentError:
    """A layer or a head that a model with so many of them does not have."""
    return ExperimentError(part, said("no_such_layer" if part == "layer" else "no_such_head", last=count - 1, got=got))


def check_new_tokens(experiment: Experiment, limit: int) -> None:
    """Raise `ExperimentError` for an answer that may get longer than this program allows."""
    asked = experiment.stop.max_new_tokens
    if asked > limit:
        told = said("over_the_limit", limit=limit, asked=asked)
        raise ExperimentError("stop.max_new_tokens", told)


def context_limit(experiment: Experiment, facts: ModelFacts) -> int:
    """Positions that prompt and answer may take: the model's context, or less where the experiment says so.

    A strategy that drops what is too long limits the prompt alone. In a window whose positions start again an answer
    never comes to the end of them.
    """
    context = experiment.context
    if context.strategy == "sliding_window" and context.positions == "restart":
        return ENDLESS
    asked = context.max_tokens if context.strategy == "none" else None
    return facts.context if asked is None else min(asked, facts.context)


def window_size(experiment: Experiment, facts: ModelFacts) -> int:
    """Tokens that a sliding window holds."""
    return min(experiment.context.max_tokens or facts.context, facts.context)


def held_limit(experiment: Experiment, facts: ModelFacts) -> int:
    """Positions that the cache comes to hold at most."""
    slides = experiment.context.strategy == "sliding_window"
    return window_size(experiment, facts) if slides else context_limit(experiment, facts)


def check_prompt(
    experiment: Experiment, facts: ModelFacts, prompt_tokens: int, cache_budget: int | None, *, offset: int = 0
) -> None:
    """Raise `ExperimentError`, with both numbers, for a prompt that is empty, over the context, or over the budget.

    `cache_budget` limits in bytes what the turn may come to hold in the KV cache, by formula. `offset` is the position
    of the prompt's first token.
    """
    path = "prompt" if experiment.messages is None else "messages"
    if prompt_tokens == 0:
        raise ExperimentError(path, said("empty_prompt"))
    limit = context_limit(experiment, facts)
    if prompt_tokens > limit:
        whose = said("the_context") if limit == facts.context else "context.max_tokens"
        raise ExperimentError(path, said("prompt_too_long", tokens=prompt_tokens, whose=whose, limit=limit))
    if offset + prompt_tokens > limit:
        raise ExperimentError("context.positions", said("positions_run_out", reach=offset + prompt_tokens, limit=limit))
    if cache_budget is None:
        return
    forwarded = min(prompt_tokens + experiment.stop.max_new_tokens - 1, held_limit(experiment, facts))
    needed = facts.kv_bytes(forwarded)
    if needed > cache_budget:
        raise ExperimentError(
            "stop.max_new_tokens", said("cache_too_big", positions=forwarded, needed=needed, allowed=cache_budget)
        )
