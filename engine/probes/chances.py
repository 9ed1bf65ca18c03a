"""The probability that a turn's steps gave to given tokens, one each, in one forward over the ids."""

from collections.abc import Sequence

import numpy as np
import torch

from engine import kv_cache
from engine.answers.chances import Chances
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.limits import check_id
from engine.probes.recompute import cache_before, chain_of, context_ids, mask_length
from engine.said import said
from engine.stages.forward import forward_newest
from engine.stages.inputs import make_inputs

#: Steps that one question may span: their logits are [steps, vocab].
MAX_STEPS = 64


def chances(
    conversation: Conversation, *, token_ids: Sequence[int], steps: Sequence[int] = (), turn: int | None = None
) -> Chances:
    """For each of `steps` (none: 0, 1, …), in any order, the token at the same place of `token_ids`.

    `turn` None is the current one.

    Raises `ExperimentError` for a turn, step or id that is not there, for steps that span more than `MAX_STEPS`, and
    in a sliding window, whose steps each saw something else.
    """
    turn = max(0, conversation.trace.turns - 1) if turn is None else turn
    steps = steps or range(len(token_ids))
    if not steps or max(steps) - min(steps) >= MAX_STEPS or len(steps) > 4 * MAX_STEPS:
        raise ExperimentError("steps", said("steps_in_a_row", most=MAX_STEPS))
    if len(steps) != len(token_ids):
        raise ExperimentError("token_ids", said("one_token_a_step", steps=len(steps), got=len(token_ids)))
    if conversation.experiment.context.strategy == "sliding_window":
        raise ExperimentError("context.strategy", said("window_own_contexts"))
    prompt, answer = context_ids(conversation, turn, max(steps))
    context_ids(conversation, turn, min(steps))
    loaded, ids, count = conversation.loaded, prompt + answer, max(steps) - min(steps) + 1
    for token_id in token_ids:
        check_id(token_id, loaded.facts, "token_ids")
    cache = cache_before(conversation, ids, count)
    past = kv_cache.tokens(cache)
    length = mask_length(conversation, len(prompt), len(ids))
    inputs = make_inputs(ids[past:], past=past, device=loaded.device, mask_length=length)
    rows = forward_newest(loaded.model, inputs, cache, count)
    chain = chain_of(conversation, turn, prompt)
    context = torch.tensor([ids], dtype=torch.long, device=loaded.device)
    found = []
    for step, token_id in zip(steps, token_ids, strict=True):
        snapshots = chain.run(context[:, : len(prompt) + step], rows[step - min(steps)])
        token = np.array([token_id], np.int64)
        found.append([float(snapshots[stage].probabilities(token)[0]) for stage in (0, -1)])
    both = np.array(found, np.float32)
    return Chances(turn, tuple(steps), tuple(token_ids), both[:, 0], both[:, 1])
