"""The projections of one decoder layer: which module holds which, apart or several in one matrix."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from engine.anatomy import AnatomyError, Block, no_part
from engine.probes.by_hand import Linear, read_linear
from engine.said import said

_QKV = ("q_proj", "k_proj", "v_proj")
_SHARED_QKV = ("c_attn", "qkv_proj")
_GATED = ("gate_proj", "up_proj", "down_proj")
_SHARED_GATE = ("gate_up_proj", "down_proj")
_PLAIN = (("c_fc", "c_proj"), ("up_proj", "down_proj"))
_ACTIVATION = ("act_fn", "activation_fn", "act")


@dataclass(frozen=True, eq=False)
class FeedForward:
    """down(activation(gate(x)) · up(x)), or without a gate down(activation(up(x)))."""

    gate: Linear | None
    up: Linear
    down: Linear
    activation: Callable[[torch.Tensor], torch.Tensor]


def find_qkv(block: Block, *, heads: int, kv_heads: int, head_dim: int) -> tuple[Linear, Linear, Linear]:
    """The projections to queries, keys and values. Raises `AnatomyError`."""
    attention, sizes = block.attention, (heads * head_dim, kv_heads * head_dim, kv_heads * head_dim)
    shared = next((name for name in _SHARED_QKV if hasattr(attention, name)), None)
    if _has(attention, _QKV):
        query, key, value = (read_linear(getattr(attention, name), name) for name in _QKV)
    elif shared is not None:
        query, key, value = read_linear(getattr(attention, shared), shared).split(*sizes)
    else:
        raise _missing(attention, "part_query_key_value", block, [_QKV[0], *_SHARED_QKV])
    found = tuple(len(one.weight) for one in (query, key, value))
    if found != sizes:
        raise AnatomyError(said("projects_to", module=type(attention).__name__, found=found, expected=sizes))
    return query, key, value


def find_feed_forward(block: Block) -> FeedForward:
    """The projections and the activation of the feed-forward. Raises `AnatomyError`."""
    part = block.feed_forward
    activation = next((getattr(part, name) for name in _ACTIVATION if callable(getattr(part, name, None))), None)
    if activation is None:
        raise _missing(part, "part_activation", block, _ACTIVATION)
    if _has(part, _GATED):
        gate, up, down = (read_linear(getattr(part, name), name) for name in _GATED)
        return FeedForward(gate, up, down, activation)
    if _has(part, _SHARED_GATE):
        both, down = (read_linear(getattr(part, name), name) for name in _SHARED_GATE)
        half = len(both.weight) // 2
        gate, up = both.split(half, half)
        return FeedForward(gate, up, down, activation)
    for names in _PLAIN:
        if _has(part, names):
            up, down = (read_linear(getattr(part, name), name) for name in names)
            return FeedForward(None, up, down, activation)
    looked = [_GATED[0], _SHARED_GATE[0], *(names[0] for names in _PLAIN)]
    raise _missing(part, "part_feed_forward_projections", block, looked)


def _has(part: nn.Module, names: tuple[str, ...]) -> bool:
    return all(hasattr(part, name) for name in names)


def _missing(module: nn.Module, part: str, block: Block, names: Sequence[str]) -> AnatomyError:
    return AnatomyError(no_part(module, said(part, layer=block.index), names))
