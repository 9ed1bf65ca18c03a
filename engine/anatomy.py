"""Where the parts of a decoder lie: asked of the model's own modules, so that a probe works for every family alike.

Families differ in names and in the order of their norms. What is found here is what a probe may use; what is not
there is an `AnatomyError` whose message says what is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel

from engine.refusals import Refused
from engine.said import Said, said
from engine.sizes import FEED_FORWARD

#: Names under which families keep the same part, most telling first.
_ATTENTION = ("self_attn", "attn", "attention")
FINAL_NORM = ("norm", "ln_f", "final_layernorm", "final_layer_norm", "embedding_norm")
_OUTPUT = ("o_proj", "c_proj", "out_proj", "dense")
_POSITIONS = ("wpe", "embed_positions")


class AnatomyError(Refused):
    """A part that a view needs is not there; the message says which."""


def no_part(module: nn.Module, what: Said, names: Sequence[str]) -> Said:
    """That a module has not `what` is wanted of it under any of these names."""
    return said("anatomy_no_part", module=type(module).__name__, what=what, names=", ".join(names))


@dataclass(frozen=True, eq=False)
class Block:
    """One decoder layer. The stream goes: x + after_attention(attention(norm(x))), then the same with the feed-forward.

    The two `after_` norms exist in few families (Gemma 2 and 3); None stands for leaving the output as it is.
    """

    index: int
    module: nn.Module
    attention: nn.Module
    output_projection: nn.Module
    feed_forward: nn.Module
    attention_norm: nn.Module
    feed_forward_norm: nn.Module
    after_attention: nn.Module | None
    after_feed_forward: nn.Module | None
    multiplier: float  # what attention and the feed-forward give is multiplied by it (Granite); 1 for most

    def attention_contribution(self, mixed: torch.Tensor) -> torch.Tensor:
        """What attention adds to the stream [n, hidden], from its mixed values [n, heads, head_dim]."""
        added: torch.Tensor = self.output_projection(mixed.flatten(-2))
        return self.multiplier * (self.after_attention(added) if self.after_attention else added)

    def feed_forward_contribution(self, stream: torch.Tensor) -> torch.Tensor:
        """What the feed-forward adds to the stream [n, hidden] as it stands after attention."""
        read = self.feed_forward_norm(stream)
        # Mixtures of experts take batches only.
        added: torch.Tensor = self.feed_forward(read.reshape(1, -1, read.shape[-1])).reshape(stream.shape)
        return self.multiplier * (self.after_feed_forward(added) if self.after_feed_forward else added)


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The parts of a decoder-only model."""

    model: PreTrainedModel
    decoder: nn.Module
    embedding: nn.Module
    positions: nn.Module | None  # learned positions, added to the embedding (GPT-2)
    rotary: nn.Module | None
    blocks: tuple[Block, ...]
    final_norm: nn.Module
    head: nn.Module
    softcap: float | None  # of the final logits (Gemma 2)
    logit_scale: float  # the logits are multiplied by it (Cohere, Granite divide); 1 for most

    def unembed(self, normed: torch.Tensor) -> torch.Tensor:
        """Logits [..., vocab] float32 of streams [..., hidden] that went through the final norm already."""
        logits: torch.Tensor = self.head(normed).float()
        if self.logit_scale != 1:
            logits = logits * self.logit_scale
        return logits if self.softcap is None else self.softcap * torch.tanh(logits / self.softcap)


def anatomy(model: PreTrainedModel) -> Anatomy:
    """Find the parts of `model`. Raises `AnatomyError`."""
    if any(parameter.device.type == "meta" for parameter in model.parameters()):
        raise AnatomyError(said("anatomy_offloaded"))
    config = model.config.get_text_config(decoder=True)
    decoder = model.get_decoder()
    blocks = next(
        (one for one in decoder.children() if isinstance(one, nn.ModuleList) and len(one) == config.num_hidden_layers),
        None,
    )
    if blocks is None:
        raise AnatomyError(said("anatomy_no_list", model=type(model).__name__))
    head = model.get_output_embeddings()
    if head is None:
        raise AnatomyError(said("anatomy_no_head", model=type(model).__name__))
    return Anatomy(
        model=model,
        decoder=decoder,
        embedding=model.get_input_embeddings(),
        positions=child(decoder, _POSITIONS),
        rotary=child(decoder, ("rotary_emb",)),
        blocks=tuple(_block(index, module) for index, module in enumerate(blocks)),
        final_norm=_needed(decoder, FINAL_NORM, said("part_final_norm")),
        head=head,
        softcap=getattr(config, "final_logit_softcapping", None),
        logit_scale=_logit_scale(config),
    )


def _block(index: int, module: nn.Module) -> Block:
    attention = _needed(module, _ATTENTION, said("part_attention", layer=index))
    # Where a norm follows attention *and* one precedes the feed-forward, the first belongs to attention's output.
    before_feed_forward = child(module, ("pre_feedforward_layernorm",))
    after_attention = child(module, ("post_attention_layernorm",)) if before_feed_forward is not None else None
    return Block(
        index=index,
        module=module,
        attention=attention,
        output_projection=_needed(attention, _OUTPUT, said("part_output_projection", layer=index)),
        feed_forward=_needed(module, FEED_FORWARD, said("part_feed_forward", layer=index)),
        attention_norm=_needed(module, ("input_layernorm", "ln_1"), said("part_first_norm", layer=index)),
        feed_forward_norm=before_feed_forward
        if before_feed_forward is not None
        else _needed(module, ("post_attention_layernorm", "ln_2"), said("part_second_norm", layer=index)),
        after_attention=after_attention,
        after_feed_forward=child(module, ("post_feedforward_layernorm",)),
        multiplier=float(getattr(module, "residual_multiplier", 1.0)),
    )


def _logit_scale(config: object) -> float:
    scale = getattr(config, "logit_scale", None)
    if scale is not None:
        return float(scale)
    divisor = getattr(config, "logits_scaling", None)
    return 1.0 if divisor is None else 1.0 / float(divisor)


def child(module: nn.Module, names: tuple[str, ...]) -> nn.Module | None:
    return next((found for name in names if isinstance(found := getattr(module, name, None), nn.Module)), None)


def _needed(module: nn.Module, names: tuple[str, ...], what: Said) -> nn.Module:
    found = child(module, names)
    if found is None:
        raise AnatomyError(no_part(module, what, names))
    return found
