"""One step's logits once more: from a slice of the cache, or from nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import Cache

from engine import kv_cache
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.probes.windowed import Once, alone, once_in_window, window_at, window_moved
from engine.said import said
from engine.stages.forward import Forwarded, forward
from engine.stages.inputs import Inputs, make_inputs
from engine.stages.processors import Chain, build_chain
from engine.stages.snapshots import Snapshot
from engine.stages.vocabulary import vocabulary
from engine.tools.rounds import grammar_of


@dataclass(frozen=True, eq=False)
class Recomputed:
    """Logits [vocab] float32 of a step; `reused` positions came from the cache, `fed` were computed."""

    logits: torch.Tensor
    reused: int
    fed: int
    seconds: float


def context_ids(conversation: Conversation, turn: int, step: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Prompt ids of a turn, and the ids of its answer before `step`.

    Raises `ExperimentError` for a turn that was not rendered or a step that was not reached.
    """
    rendered = conversation.trace.rendered(turn)
    if rendered is None:
        raise ExperimentError("turn", said("no_such_turn", count=conversation.trace.turns, turn=turn))
    answer = tuple(item.token_id for item in conversation.trace.steps(turn))
    if not 0 <= step <= len(answer):
        raise ExperimentError("step", said("no_such_step", turn=turn, count=len(answer), step=step))
    return tuple(rendered.token_ids.tolist()), answer[:step]


def cache_before(conversation: Conversation, ids: Sequence[int], newest: int) -> Cache:
    """The positions of `ids` before the `newest` ones, as views of the run's cache, or an empty cache.

    Empty where the cache does not hold them all, or cannot be cut back that far. The run's cache stays as it is.
    Raises `ExperimentError` where a sliding window has moved: no cache of a whole context shows what was seen then.
    """
    if window_moved(conversation):
        raise ExperimentError("", said("window_has_moved"))
    current, past = conversation.turn, len(ids) - newest
    if current is not None and current.cache is not None:
        held = kv_cache.common_prefix(current.cached_ids, ids)
        if held >= past and kv_cache.reason_against_cut(current.cache, past) is None:
            return kv_cache.slice_cache(current.cache, past)
    return kv_cache.new_cache(conversation.loaded.model.config)


def mask_length(conversation: Conversation, prompt: int, length: int) -> int | None:
    """How long the run's attention mask was for a context of `length` positions; None: as long as the context."""
    return prompt if length > prompt and conversation.experiment.mistake == "mask_not_extended" else None


def filled_before(conversation: Conversation, turn: int, ids: Sequence[int], newest: int) -> Cache:
    """A cache of the positions of `ids` before the `newest` ones: views of the run's, or else computed in one forward.

    That forward sees the attention mask that the run did, and keeps nothing but keys and values.
    """
    cache, first = cache_before(conversation, ids, newest), len(ids) - newest
    past = kv_cache.tokens(cache)
    if past < first:
        feed(conversation, turn, ids[:first], cache)
    return cache


def feed(conversation: Conversation, turn: int, ids: Sequence[int], cache: Cache, *, states: bool = False) -> Forwarded:
    """One forward over the positions of `ids` that `cache` lacks, under the attention mask that the run had there."""
    return forward(conversation.loaded.model, _inputs(conversation, turn, ids, cache), cache, states=states)


def _inputs(conversation: Conversation, turn: int, ids: Sequence[int], cache: Cache) -> Inputs:
    loaded, rendered = conversation.loaded, conversation.trace.rendered(turn)
    past = kv_cache.tokens(cache)
    length = mask_length(conversation, len(rendered.token_ids) if rendered else 0, len(ids))
    return make_inputs(ids[past:], past=past, device=loaded.device, mask_length=length)


def newest_alone(conversation: Conversation, turn: int, ids: tuple[int, ...]) -> Once:
    """The forward of the newest of `ids`, the context of a turn up to some position, by itself and as the run saw it.

    What came before is a view of the run's cache, or was computed just now; the run's cache stays as it is. Raises
    `ExperimentError` for a position that an earlier turn computed in an earlier sliding window.
    """
    once = _moved(conversation, turn, ids, cached=True)
    if once is not None:
        return alone(conversation, once)
    if not window_moved(conversation):
        cache = filled_before(conversation, turn, ids, 1)
    else:  # in another turn: the run's cache begins elsewhere
        cache = kv_cache.new_cache(conversation.loaded.model.config)
        if len(ids) > 1:
            feed(conversation, turn, ids[:-1], cache)
    past = kv_cache.tokens(cache)
    return Once(cache, _inputs(conversation, turn, ids, cache), reused=past, fed=1)


def _moved(conversation: Conversation, turn: int, ids: tuple[int, ...], *, cached: bool) -> Once | None:
    """The forward in a sliding window that has moved before the newest of `ids`; None where none has."""
    window, rendered = window_at(conversation, turn), conversation.trace.rendered(turn)
    if window is None or rendered is None or not (window.offset or len(ids) > window.size):
        return None
    return once_in_window(conversation, turn, window, ids, len(rendered.token_ids), cached=cached)


def recompute(conversation: Conversation, turn: int, step: int, *, cached: bool = True) -> Recomputed:
    """The logits from which `step` of `turn` chose, in one forward.

    With `cached`, keys and values of all but the newest position are a view of the conversation's cache, where it
    still holds them and can be cut that far back; else every position is computed. The run's cache stays as it is.
    Both ways see the same attention mask as the run did, a shortened one included.
    """
    prompt, answer = context_ids(conversation, turn, step)
    ids = prompt + answer
    once = _moved(conversation, turn, ids, cached=cached)
    if once is not None:
        result = forward(conversation.loaded.model, once.inputs, once.cache)
        return Recomputed(result.logits, once.reused, once.fed, result.seconds)
    usable = cached and not window_moved(conversation)
    cache = cache_before(conversation, ids, 1) if usable else kv_cache.new_cache(conversation.loaded.model.config)
    past = kv_cache.tokens(cache)
    result = feed(conversation, turn, ids, cache)
    return Recomputed(result.logits, reused=past, fed=len(ids) - past, seconds=result.seconds)


def stages_of(conversation: Conversation, turn: int, step: int) -> tuple[Snapshot, ...]:
    """Every stage of a step with its whole distribution. The current turn's first step needs no forward."""
    prompt, answer = context_ids(conversation, turn, step)
    current = conversation.turn
    first = current.first_logits if current is not None and current.index == turn and step == 0 else None
    logits = recompute(conversation, turn, step).logits if first is None else first
    input_ids = torch.tensor([prompt + answer], dtype=torch.long, device=conversation.loaded.device)
    return chain_of(conversation, turn, prompt).run(input_ids, logits)


def chain_of(conversation: Conversation, turn: int, prompt: Sequence[int]) -> Chain:
    """The processors of a turn with these prompt ids, the grammar of a forced call among them."""
    loaded = conversation.loaded
    return build_chain(
        conversation.experiment,
        loaded.facts,
        loaded.tokenizer,
        prompt_ids=prompt,
        device=loaded.device,
        forcing=grammar_of(conversation.trace, turn, vocabulary(loaded.tokenizer)),
    )
