"""One layer at one position, operation by operation: worked out by hand from its weights, beside the model's own."""

import torch

from engine.answers.layer import LayerAt
from engine.attention import capturing
from engine.conversation import Conversation
from engine.limits import no_such
from engine.probes.checked_anatomy import checked_anatomy
from engine.probes.inside import context_of
from engine.probes.layer_work import work
from engine.probes.recompute import mask_length, newest_alone
from engine.probes.watched import Seen, watching
from engine.stages.forward import forward
from engine.trace import Floats

#: Largest difference that roundings explain, by the type of the weights. By hand all is worked out in float32; a
#: 16-bit model rounds after each operation, to 8 (bfloat16) or 11 (float16) binary digits.
EXPECTED = {"float32": 1e-4, "float16": 1.25e-2, "bfloat16": 0.1}


def layer(
    conversation: Conversation, *, turn: int | None = None, position: int | None = None, layer: int = 0
) -> LayerAt:
    """Layer `layer` at `position` (None: the last one fed) of a turn (None: the current), in one decode step.

    The stream before the layer and the keys and values of earlier positions are the model's; everything after is
    worked out by hand, each operation from the one before. The model's numbers are taken while it computes. Raises
    `ExperimentError` for a turn, position or layer that is not there, `AnatomyError` for a model whose parts cannot be
    found or worked out.
    """
    facts = conversation.loaded.facts
    if layer not in range(facts.layers):
        raise no_such("layer", facts.layers, layer)
    turn, ids = context_of(conversation, turn, position)
    seen, stream = _watch(conversation, turn, ids, layer)
    with torch.inference_mode():
        operations = tuple(work(seen))
    known = [one for one in operations if one.difference is not None]
    # A NaN counts as the largest of all.
    worst = max(known, key=lambda one: (one.difference != one.difference, one.difference))
    heads, head_dim = seen.attended.query.shape[1], seen.attended.query.shape[3]
    assert worst.difference is not None
    assert operations[-1].difference is not None
    return LayerAt(
        turn=turn,
        position=len(ids) - 1,
        layer=layer,
        operations=operations,
        largest=worst.difference,
        worst=worst.name,
        whole=operations[-1].difference,
        expected=EXPECTED.get(facts.dtype, EXPECTED["bfloat16"]),
        dtype=facts.dtype,
        heads=heads,
        kv_heads=seen.attended.key.shape[1],
        head_dim=head_dim,
        stream=stream,
    )


def _watch(conversation: Conversation, turn: int, ids: tuple[int, ...], layer: int) -> tuple[Seen, Floats]:
    """What the layer's modules did at the last of `ids`, and the norms [L] of the stream before each layer.

    Only that position is fed, so that every module sees one vector; where the run's cache does not hold those before
    it, they are computed first.
    """
    loaded, rendered = conversation.loaded, conversation.trace.rendered(turn)
    parts = checked_anatomy(loaded.model)
    block = parts.blocks[layer]
    once = newest_alone(conversation, turn, ids)
    with capturing([layer]) as attended, watching(block.module.modules()) as calls:
        forwarded = forward(loaded.model, once.inputs, once.cache, states=True)
    facts = loaded.facts
    window = facts.sliding_window if facts.layer_kinds[layer] == "sliding" else None
    told = int(once.inputs.position_ids[0, -1])
    norms = torch.stack([state[-1].float().norm() for state in forwarded.states[:-1]])
    length = mask_length(conversation, len(rendered.token_ids) if rendered else 0, len(ids))
    return Seen(block, calls, attended[layer], parts.rotary, told, window, length), norms.numpy(force=True)
