"""Whether a model computes as its anatomy says: tried once a loaded model, before a view shows numbers that follow.

Parts are found by their names, and a name does not tell how a layer joins them: side by side (GPT-NeoX), or with
norms of which nobody asked (GLM-4). What the parts give is therefore set beside what the model itself has computed.
"""

import weakref
from collections.abc import Iterator

import torch
from transformers import PreTrainedModel

from engine import kv_cache
from engine.anatomy import Anatomy, AnatomyError, anatomy
from engine.attention import NAME, capturing
from engine.probes.embedding_table import table_of
from engine.said import Said, said
from engine.stages.forward import forward
from engine.stages.inputs import make_inputs

#: What may differ, as a share of what is compared. The same modules are given the same numbers, so in float32 next to
#: nothing does; kernels that round to 16 bits or fewer may do so elsewhere.
EXACT, ROUNDED = 1e-3, 0.05
#: Tokens of the trial, from all over the vocabulary: the first one attends to itself alone.
TOKENS = 4

#: Why a model's numbers cannot be worked out, None where they can; as long as it lives.
_REASONS: "weakref.WeakKeyDictionary[PreTrainedModel, Said | None]" = weakref.WeakKeyDictionary()


def seen_anatomy(model: PreTrainedModel) -> Anatomy:
    """The parts of a model whose attention can be seen. Raises `AnatomyError`."""
    if model.config._attn_implementation != NAME:
        raise AnatomyError(said("attention_own_way", model=type(model).__name__))
    return anatomy(model)


def checked_anatomy(model: PreTrainedModel) -> Anatomy:
    """The same, of a model that adds its parts up as a `Block` says. Raises `AnatomyError`."""
    parts = seen_anatomy(model)
    if model not in _REASONS:
        _REASONS[model] = next(_reasons(parts), None)
    reason = _REASONS[model]
    if reason is not None:
        raise AnatomyError(reason)
    return parts


def _reasons(parts: Anatomy) -> Iterator[Said]:
    """One forward of a few tokens, and every layer, the final norm and the head worked out beside it."""
    model, rows = parts.model, table_of(parts.embedding).shape[0]
    ids = [rows * (1 + at) // (1 + TOKENS) for at in range(TOKENS)]
    inputs = make_inputs(ids, past=0, device=model.device)
    with torch.inference_mode():
        with capturing() as attended:
            forwarded = forward(model, inputs, kv_cache.new_cache(model.config), states=True)
        states = forwarded.states
        for block, before, after in zip(parts.blocks, states[:-1], states[1:], strict=True):
            if block.index not in attended:
                yield said("no_attention_seen", layer=block.index, model=type(model).__name__)
                return
            middle = before + block.attention_contribution(attended[block.index].output[0])
            end = middle + block.feed_forward_contribution(middle)
            if block is not parts.blocks[-1]:
                yield from _unlike(parts, said("part_layer", layer=block.index), end, after, before)
            else:  # the last state that a model gives is normed already
                yield from _unlike(parts, said("part_last"), parts.final_norm(end), after)
        yield from _unlike(parts, said("part_head"), parts.unembed(states[-1][-1:]), forwarded.logits[None])


def _unlike(
    parts: Anatomy, what: Said, ours: torch.Tensor, model: torch.Tensor, before: torch.Tensor | None = None
) -> Iterator[Said]:
    """That rows [n, k] differ from the model's by more than roundings explain.

    With `before`, the stream to which something was added: how much differs is told of what was added, so that a long
    stream hides nothing, and each number may be rounded as the stream itself is.
    """
    dtype = parts.model.dtype
    ours, model = ours.float(), model.float()
    difference = (ours - model).abs()
    if before is not None:
        before = before.float()
        step = 2 * torch.finfo(dtype).eps * torch.maximum(before.abs(), torch.maximum(ours.abs(), model.abs()))
        difference, ours, model = (difference - step).clamp(min=0), ours - before, model - before
    exact = dtype == torch.float32 and not getattr(parts.model, "is_quantized", False)
    allowed = EXACT if exact else ROUNDED
    found, whole = difference.norm(dim=-1), model.norm(dim=-1)
    if not bool((found <= allowed * whole).all()):  # a NaN is not within bounds either
        larger = torch.maximum(ours.norm(dim=-1), whole)  # the model itself may have added nothing
        share = float((found / larger).nan_to_num().max())
        yield said("anatomy_unlike", model=type(parts.model).__name__, what=what, difference=share, allowed=allowed)
