"""Self-check: the current turn once more with no cache to begin with. What reuse saved, and that it changed nothing."""

import torch

from engine import kv_cache
from engine.answers.cold_turn import ColdTurn
from engine.conversation import Conversation
from engine.decode import Turn
from engine.experiment import ExperimentError
from engine.kv_cache import common_prefix
from engine.new_turn import new_turn
from engine.probes.recompute import cache_before, filled_before, recompute
from engine.said import said
from engine.stages.forward import Forwarded, forward
from engine.stages.inputs import make_inputs
from engine.trace import Stepped

#: Tokens that are drawn again at most: other visitors wait meanwhile.
MAX_TOKENS = 32


def cold_turn(conversation: Conversation) -> ColdTurn:
    """Render nothing anew: the current turn's ids, prefilled from nothing, and drawn with the same random numbers.

    The run's cache and generator stay as they are. A branch was taken up without a cache: its prefill is made again,
    from as many positions as it began with. Raises `ExperimentError` before the turn was prefilled.
    """
    trace, current = conversation.trace, conversation.turn
    prefilled = trace.prefilled(current.index) if current else None
    if current is None or prefilled is None:
        raise ExperimentError("turn", said("no_turn_computed"))
    ours = tuple(current.answer[:MAX_TOKENS])
    again = _warm_again(conversation, current, prefilled.first)
    warm = current.first_logits
    if warm is None:  # a branch was taken up without it: its logits are computed as they were
        warm = again.logits if again else recompute(conversation, current.index, 0).logits
    generator = torch.Generator(conversation.loaded.device)
    if ours:
        generator.set_state(current.random_state(0))
    cold = new_turn(conversation.loaded, trace, current.index, current.prompt_ids, None, generator, current.window)
    seconds = cold.prefill().seconds
    assert cold.first_logits is not None
    for step in range(len(ours)):
        events = cold.step(trace.experiment.forced_token(current.index, step))
        if not isinstance(events[0], Stepped):
            break
    drawn = tuple(cold.answer)
    same = common_prefix(ours, drawn)
    return ColdTurn(
        turn=current.index,
        reused=prefilled.first,
        positions=len(current.prompt_ids),
        warm_seconds=again.seconds if again else prefilled.seconds,
        again=again is not None,
        cold_seconds=seconds,
        max_difference=float((warm - cold.first_logits).abs().max()),
        same_best=bool(torch.argmax(warm) == torch.argmax(cold.first_logits)),
        ours=ours,
        cold=drawn,
        first_difference=None if same == len(ours) == len(drawn) else same,
    )


def _warm_again(conversation: Conversation, current: Turn, reused: int) -> Forwarded | None:
    """The prefill from the first `reused` positions of the run's cache; a branch, which has none, computes them first.

    None where the cache has them no more, and where nothing was reused: warm and cold are one then.
    """
    if current.window is not None or reused == 0:
        return None
    ids, loaded = current.prompt_ids, conversation.loaded
    if current.first_logits is None:
        cache = filled_before(conversation, current.index, ids, len(ids) - reused)
    else:
        cache = cache_before(conversation, ids, len(ids) - reused)
    if kv_cache.tokens(cache) != reused:
        return None
    return forward(loaded.model, make_inputs(ids[reused:], past=reused, device=loaded.device), cache)
