"""The one attention function of every model here: the library's fused kernel, and a record of it when asked.

It is registered once, under `NAME`, and chosen when a model is taken in. Who wants to see queries, keys and values
opens `capturing()` around a forward: the record belongs to that context alone, so nothing is switched on for others,
and without one the function costs a look at a context variable.
"""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "decodescope"


@dataclass(frozen=True, eq=False)
class Attended:
    """What one layer's attention was given, after the rotary turn, and what it gave. n new positions, m visible ones.

    `mask` [1, 1 or heads, n, m] is boolean (True = visible) or added to the scores; None means causal by position.
    """

    query: torch.Tensor  # [1, heads, n, head_dim]
    key: torch.Tensor  # [1, kv_heads, m, head_dim]
    value: torch.Tensor  # [1, kv_heads, m, head_dim]
    mask: torch.Tensor | None
    scaling: float
    softcap: float | None
    output: torch.Tensor  # [1, n, heads, head_dim], before the output projection

    def scores(self, head: int) -> torch.Tensor:
        """q · k of one query head [n, m], neither scaled nor masked."""
        group = self.query.shape[1] // self.key.shape[1]
        return self.query[0, head].float() @ self.key[0, head // group].float().T

    def masked(self, head: int) -> torch.Tensor:
        """Scores of one head [n, m] scaled, capped and masked: −inf where a position may not be seen."""
        return mask_scores(cap(self.scores(head) * self.scaling, self.softcap), self._mask_of(head))

    def weights(self, head: int) -> torch.Tensor:
        """Attention weights of one head [n, m] float32; each row sums to 1."""
        return torch.softmax(self.masked(head), dim=-1)

    def all_weights(self) -> torch.Tensor:
        """Weights of all heads [heads, n, m] float32."""
        _, heads, n, head_dim = self.query.shape
        kv_heads, m = self.key.shape[1:3]
        # The queries of a group one below the other, so that no key is copied for each of them.
        grouped = self.query[0].float().reshape(kv_heads, heads // kv_heads * n, head_dim)
        scores = (grouped @ self.key[0].float().transpose(1, 2)).view(heads, n, m)
        scores = cap(scores * self.scaling, self.softcap)
        return torch.softmax(mask_scores(scores, None if self.mask is None else self.mask[0]), dim=-1)

    def newest(self, count: int) -> "Attended":
        """The record of the `count` newest positions alone."""
        return replace(
            self,
            query=self.query[:, :, -count:],
            mask=None if self.mask is None else self.mask[:, :, -count:],
            output=self.output[:, -count:],
        )

    def _mask_of(self, head: int) -> torch.Tensor | None:
        if self.mask is None:
            return None
        return self.mask[0, head if self.mask.shape[1] > 1 else 0]


def cap(scores: torch.Tensor, softcap: float | None) -> torch.Tensor:
    """softcap · tanh(scores / softcap), or the scores as they are (Gemma 2, arXiv 2408.00118)."""
    return scores if softcap is None else softcap * torch.tanh(scores / softcap)


def mask_scores(scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Scores [..., n, m] with −inf where the mask, or without one the causal order of the last n of m, hides."""
    if mask is None:
        n, m = scores.shape[-2:]
        mask = torch.ones(n, m, dtype=torch.bool, device=scores.device).tril(m - n)
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, -torch.inf)
    return scores + mask


@dataclass(frozen=True)
class Record:
    """What `capturing` collects: `layers` by index, of those `wanted` (None: all)."""

    wanted: Container[int] | None
    last: int | None  # the layer after which the forward ends
    layers: dict[int, Attended] = field(default_factory=dict)


class _EnoughError(Exception):
    """Ends a forward whose later layers nobody wants."""


_RECORD: ContextVar[Record | None] = ContextVar("attention_record", default=None)


@contextmanager
def capturing(wanted: Container[int] | None = None, *, last: int | None = None) -> Iterator[dict[int, Attended]]:
    """Collect what the attention of each layer (or of the `wanted` ones) sees and gives, within this context.

    A second forward inside the same context overwrites the first. The layer `last` ends the forward, and with it the
    `with` block: what the forward would have given is not wanted.
    """
    record = Record(wanted, last)
    token = _RECORD.set(record)
    try:
        yield record.layers
    except _EnoughError:
        pass
    finally:
        _RECORD.reset(token)


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """The signature that transformers' models call: output [1, n, heads, head_dim], and no weights.

    The fused kernel cannot cap scores; for the few models that do, attention is computed in plain steps.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if softcap is not None:
        output = _capped(query, key, value, attention_mask, scale, softcap)
    elif _groups_suffice(query, attention_mask, options):
        output = _grouped(query, key, value, attention_mask, scale)
    else:
        output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **options)
    record = _RECORD.get()
    if record is not None:
        layer = int(module.layer_idx)  # type: ignore[arg-type]  # every attention module with a cache has one
        if record.wanted is None or layer in record.wanted:
            record.layers[layer] = Attended(query, key, value, attention_mask, scale, softcap, output)
        if layer == record.last:
            raise _EnoughError
    return output, None


def _groups_suffice(query: torch.Tensor, mask: torch.Tensor | None, options: dict[str, Any]) -> bool:
    """Whether the kernel takes grouped keys as they are: on a CPU, several queries with a mask or one without.

    One query with a mask the library packs in a way of its own; without a mask it tells the kernel of the order.
    """
    shift = options.get("position_bias")
    return query.device.type == "cpu" and shift is None and (query.shape[2] > 1) == (mask is not None)


def _grouped(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, scaling: float
) -> torch.Tensor:
    """What `sdpa_attention_forward` gives, number for number, without its copies of the keys and values of a group.

    For the sake of other devices it makes them wherever there is a mask.
    """
    output = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=scaling, enable_gqa=query.shape[1] != key.shape[1]
    )
    return output.transpose(1, 2).contiguous()


def _capped(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float,
    softcap: float,
) -> torch.Tensor:
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    scores = cap(query @ key.transpose(2, 3) * scaling, softcap)
    scores = mask_scores(scores, mask)
    # Padding on the left sees nothing: its softmax would be NaN, and 0 × NaN would spoil every row that follows.
    blind = scores.amax(dim=-1, keepdim=True) == -torch.inf
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).masked_fill(blind, 0.0).to(query.dtype)
    return (weights @ value).transpose(1, 2).contiguous()


def mask(*sizes: Any, dtype: torch.dtype = torch.float32, **options: Any) -> torch.Tensor | None:
    """transformers' mask of a forward; on a CPU 0 and −inf to add, which the kernel would make of it in every layer."""
    visible = sdpa_mask(*sizes, **options)
    if visible is None or visible.device.type != "cpu":
        return visible
    return torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, -torch.inf)


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask)
