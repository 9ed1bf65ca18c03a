"""One position of a run in a sliding window once more, under the very window that it saw."""

from dataclasses import dataclass, replace

from transformers import Cache

from engine import kv_cache
from engine.context.window import Window, check_slides, feed
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.history import render_turn
from engine.limits import window_size
from engine.said import said
from engine.stages.forward import forward
from engine.stages.inputs import Inputs, make_inputs
from engine.trace import Trace
from engine.truncated import Truncated


@dataclass(frozen=True, eq=False)
class Once:
    """A forward that is ready: `reused` positions come from the run's cache, `fed` are computed in all."""

    cache: Cache
    inputs: Inputs
    reused: int
    fed: int


def window_moved(conversation: Conversation) -> bool:
    """True when tokens have left a sliding window in any turn of the run."""
    trace, turn = conversation.trace, conversation.turn
    if conversation.experiment.context.strategy != "sliding_window":
        return False
    if any(trace.of(Truncated)) or (turn is not None and turn.gone > 0):
        return True
    size = window_size(trace.experiment, trace.facts)
    return any(_outgrew(trace, index, size) for index in range(trace.turns))


def _outgrew(trace: Trace, turn: int, size: int) -> bool:
    """True when an answer pushed tokens out; a run from a file has no cache that could tell."""
    rendered, steps = trace.rendered(turn), len(trace.steps(turn))
    return rendered is not None and steps > 0 and len(rendered.token_ids) + steps - 1 > size


def ahead(conversation: Conversation, turn: int, position: int) -> int:
    """What to add to a place in the turn for the position that the model was told of the token there."""
    window = window_at(conversation, turn)
    return 0 if window is None else window.told(position) - position


def window_at(conversation: Conversation, turn: int) -> Window | None:
    """The window of a turn that was rendered; None where the strategy is another."""
    trace, current = conversation.trace, conversation.turn
    if current is not None and current.index == turn:
        return current.window
    rendered, context = trace.rendered(turn), trace.experiment.context
    if context.strategy != "sliding_window" or rendered is None:
        return None
    offset = trace.offset(turn)
    whole = render_turn(conversation.loaded, trace, turn).token_ids[:offset].tolist() if offset else []
    if len(whole) < offset:
        raise ExperimentError("events", said("begins_beyond_history", turn=turn, offset=offset, count=len(whole)))
    size = window_size(trace.experiment, trace.facts)
    window = Window(size, context.positions == "restart", tuple(whole))
    return window.begun(trace, turn, rendered.reused)


def once_in_window(
    conversation: Conversation, turn: int, window: Window, ids: tuple[int, ...], prompt: int, *, cached: bool
) -> Once:
    """The forward of the newest of `ids` in a window that has moved.

    From the run's cache where that still holds all the position saw; else what it saw is computed first, each position
    under its own window. Raises `ExperimentError` for a turn that was refused since its oldest tokens cannot leave.
    """
    loaded = conversation.loaded
    if not window.restart:
        check_slides(loaded.model.config)
    if window.restart or not cached:
        fed = feed(window, ids, prompt, None, 0, loaded)
        return Once(fed.cache, fed.inputs, reused=0, fed=fed.inputs.input_ids.shape[-1])
    position = window.offset + len(ids) - 1
    sees = window.rows(prompt, len(ids))[position]
    if sees < window.offset:
        raise ExperimentError("position", said("position_of_earlier_turn"))
    cache, begin, reused = _cache_until(conversation, turn, window, ids[:-1], prompt, sees)
    kv_cache.evict(cache, sees - begin)
    held = kv_cache.tokens(cache)
    inputs = make_inputs(ids[-1:], past=held, device=loaded.device, offset=sees)
    return Once(cache, inputs, reused=held if reused else 0, fed=1 if reused else held + 1)


def alone(conversation: Conversation, once: Once) -> Once:
    """The same with the newest position fed by itself: those that are to be computed with it are computed first."""
    inputs, held = once.inputs, kv_cache.tokens(once.cache)
    before = inputs.input_ids.shape[-1] - 1
    if not before:
        return once
    mask, positions = inputs.attention_mask, inputs.position_ids
    earlier = Inputs(inputs.input_ids[:, :-1], mask[:, : held + before], positions[:, :-1])
    forward(conversation.loaded.model, earlier, once.cache)
    return replace(once, inputs=Inputs(inputs.input_ids[:, -1:], mask, positions[:, -1:]))


def _cache_until(
    conversation: Conversation, turn: int, window: Window, ids: tuple[int, ...], prompt: int, sees: int
) -> tuple[Cache, int, bool]:
    """A cache that holds the positions of `ids` from `sees` on or from before it, where it begins, and whether it is
    a slice of the run's.
    """
    current, position = conversation.turn, window.offset + len(ids)
    if current is not None and current.index == turn and current.cache is not None:
        begin = window.offset + current.gone
        if begin <= sees and position <= begin + current.kv_tokens:
            return kv_cache.slice_cache(current.cache, position - begin), begin, True
    if not ids:
        return kv_cache.new_cache(conversation.loaded.model.config), sees, False
    fed = feed(window, ids, prompt, None, 0, conversation.loaded)
    forward(conversation.loaded.model, fed.inputs, fed.cache)
    kv_cache.evict(fed.cache, fed.evict)
    return fed.cache, window.offset + fed.gone, False
