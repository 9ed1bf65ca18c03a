"""The KV cache: kinds of its layers, bytes measured, slices, cutting back, common prefixes.

The only file that touches cache layers. What a layer can do is asked of the layer, never read off a model's name.
"""

import copy
from collections.abc import Sequence

import torch
from transformers import Cache, DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer

from engine.cache_layer import SpareLayer
from engine.facts import LayerKind
from engine.said import Said, said
from engine.trace import Shape


def new_cache(config: PretrainedConfig) -> DynamicCache:
    """An empty cache whose layers are of the kinds that the config asks for; those that keep all have spare room."""
    cache = DynamicCache(config=config)
    cache.layers = [SpareLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def layer_kind(layer: object) -> LayerKind:
    """What kind of memory a cache layer is.

    "full" keeps every position, "sliding" the last window − 1, "shared" none of its own (it reads another layer's),
    "stateful" a running state of fixed size (convolution, recurrence).
    """
    if not hasattr(layer, "keys") or hasattr(layer, "recurrent_states"):
        return "stateful"
    if not hasattr(layer, "is_sliding"):
        return "shared"
    return "sliding" if layer.is_sliding else "full"


def _tensors(layer: object) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Keys and values [batch, kv_heads, positions, head_dim]; None where the layer has none, or none yet."""
    return getattr(layer, "keys", None), getattr(layer, "values", None)


def _window(layer: object) -> int | None:
    """How far a sliding layer sees, itself included; None for a layer of another kind."""
    return getattr(layer, "sliding_window", None)


def tokens(cache: Cache) -> int:
    """Positions that the cache has taken in, also where a sliding layer has dropped some again."""
    return int(cache.get_seq_length())


def measured_bytes(cache: Cache) -> int:
    """Bytes of the keys and values of every position held; spare room is not counted."""
    return sum(tensor.nbytes for layer in cache.layers for tensor in _tensors(layer) if tensor is not None)


def first_shapes(cache: Cache) -> dict[str, Shape]:
    """Shapes of keys and values in the first layer that holds any; {} where none does."""
    for layer in cache.layers:
        keys, values = _tensors(layer)
        if keys is not None and values is not None:
            return {"keys": tuple(keys.shape), "values": tuple(values.shape)}
    return {}


def reason_against_cut(cache: Cache, count: int, *, held: int | None = None) -> Said | None:
    """Why the cache cannot go back to its first `count` positions; None when it can.

    With `held`, one of the same layers that had taken in so many.
    """
    held = tokens(cache) if held is None else held
    if not 0 <= count <= held:
        return said("cache_holds", held=held, count=count)
    if count == held:
        return None
    for index, layer in enumerate(cache.layers):
        if layer_kind(layer) == "stateful":
            return said("state_no_way_back", layer=index)
        window = _window(layer)
        if window is not None and held >= window:
            return said("window_dropped", layer=index, window=window)
    return None


def cut_back(cache: Cache, count: int) -> bool:
    """Drop every position from `count` on, in place. False, with nothing done, where the cache cannot go back."""
    if reason_against_cut(cache, count) is not None:
        return False
    if count < tokens(cache):
        cache.crop(count - tokens(cache))
    return True


def reason_against_evicting(cache: Cache) -> Said | None:
    """Why the oldest positions of the cache cannot be forgotten while the others stay; None when they can."""
    for index, layer in enumerate(cache.layers):
        kind = layer_kind(layer)
        if kind == "stateful":
            return said("state_nothing_out", layer=index)
        if kind == "sliding":
            return said("own_window", layer=index, window=_window(layer) or 0)
    return None


def evict(cache: Cache, count: int) -> None:
    """Forget the first `count` positions, in place. Raises ValueError with the reason where that cannot be."""
    reason = reason_against_evicting(cache) if count else None
    if reason is not None:
        raise ValueError(reason)
    for layer in cache.layers:
        if count and isinstance(layer, SpareLayer):
            layer.evict(count)


def slice_cache(cache: Cache, count: int) -> Cache:
    """A second cache that holds the first `count` positions, as views of this one's tensors.

    Nothing but running states is copied. Growing either leaves the other as it is: both move to tensors of their own
    with the next position.
    Raises ValueError with the reason where the cache cannot go back that far.
    """
    reason = reason_against_cut(cache, count)
    if reason is not None:
        raise ValueError(reason)
    for layer in cache.layers:
        if isinstance(layer, SpareLayer):
            layer.share()
    view = copy.copy(cache)
    # A running state is changed in place, so it cannot be shared.
    view.layers = [
        copy.deepcopy(layer) if layer_kind(layer) == "stateful" else copy.copy(layer) for layer in cache.layers
    ]
    cut_back(view, count)
    return view


def copy_cache(cache: Cache, count: int) -> Cache:
    """A second cache that holds the first `count` positions in tensors of its own, no longer than they need be.

    Raises ValueError with the reason where the cache cannot go back that far.
    """
    twin = slice_cache(cache, count)
    for layer in twin.layers:
        if isinstance(layer, DynamicLayer) and layer.keys is not None and layer.values is not None:
            layer.keys, layer.values = layer.keys.clone(), layer.values.clone()
    return twin


def reason_against_rows(cache: Cache) -> Said | None:
    """Why one cache cannot serve several rows at once; None when it can."""
    for index, layer in enumerate(cache.layers):
        if layer_kind(layer) == "stateful":
            return said("running_state", layer=index)
    return None


def take_rows(cache: Cache, rows: Sequence[int]) -> Cache:
    """A second cache whose rows are those of this one's named, in order; one may be named often.

    This one stays as it is. Raises ValueError with the reason where a layer keeps a running state.
    """
    reason = reason_against_rows(cache)
    if reason is not None:
        raise ValueError(reason)
    taken = slice_cache(cache, tokens(cache))
    for layer in taken.layers:
        for name, held in zip(("keys", "values"), _tensors(layer), strict=True):
            if held is not None:
                setattr(layer, name, held[torch.tensor(list(rows), device=held.device)])
    return taken


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Number of leading ids that both sequences share."""
    for index, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return index
    return min(len(first), len(second))


def is_out_of_memory(error: BaseException) -> bool:
    """True for the errors by which torch, on any device, says that memory has run out."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(
        mark in str(error).lower() for mark in ("out of memory", "can't allocate memory", "not enough memory")
    )
