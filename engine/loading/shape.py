"""The catalogue's entry of a model that an operator adds: its sizes, read off its config and its weights' headers."""

import json
import re
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine.catalog import Entry, FolderSource, HubSource, ModelError
from engine.loading.weight_files import weight_files
from engine.sizes import is_down_projection, keeps_keys, kv_heads

#: Name and shape of each tensor.
Tensors = Mapping[str, tuple[int, ...]]

MAX_HEADER_BYTES = 100_000_000
#: Constants that old checkpoints carry beside the parameters: causal masks and rotary frequencies.
CONSTANTS = re.compile(r"(?:\.attn\.(?:masked_)?bias|\.attention\.(?:masked_)?bias|inv_freq|position_ids)$")
HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output)\.weight$")


def entry_of(
    model_id: str,
    title: str,
    source: HubSource | FolderSource,
    *,
    config: Mapping[str, Any],
    tensors: Tensors,
    weight_bytes: int,
    licence: str,
    tools: bool,
) -> Entry:
    """The entry. Raises `ModelError` where the config is not that of a causal language model with plain weights."""
    if config.get("quantization_config"):
        raise ModelError(f"{title} is stored quantised; only plain weights are read (try --quantize 4bit on those)")
    if config.get("auto_map") and not config.get("model_type"):
        raise ModelError(f"{title} needs code of its own, which is never run")
    nested = config.get("text_config")
    sizes = dict(config) | (nested if isinstance(nested, dict) else {})
    heads, hidden = _size(sizes, "num_attention_heads", "n_head"), _size(sizes, "hidden_size", "n_embd")
    layers = _size(sizes, "num_hidden_layers", "n_layer")
    head = any(HEAD.search(name) for name in tensors)
    tied = bool(config.get("tie_word_embeddings", not head))
    try:
        return Entry(
            id=model_id,
            title=title,
            licence=licence,
            tools=tools,
            source=source,
            weight_bytes=weight_bytes,
            layers=layers,
            kv_layers=_kv_layers(sizes, layers),
            hidden_size=hidden,
            heads=heads,
            kv_heads=kv_heads(lambda name: _whole(sizes.get(name)), heads),
            head_dim=_size(sizes, "head_dim") or (hidden // heads if heads else 0),
            ffn_size=_ffn_size(sizes, hidden, tensors),
            vocab_rows=_size(sizes, "vocab_size"),
            context=_size(sizes, "max_position_embeddings", "n_positions", "n_ctx"),
            tied_embeddings=tied,
            parameters=count_parameters(tensors, tied=tied),
        )
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in detail["loc"])
        raise ModelError(f"{title} cannot be added: {field}: {detail['msg']}, got {detail['input']!r:.60}") from None


def _kv_layers(sizes: Mapping[str, Any], layers: int) -> int | None:
    """How many layers keep keys and values; None where all do, or the config does not tell its layers apart."""
    kinds, attending = sizes.get("layer_types"), sizes.get("full_attn_idxs")  # of LFM2, before it had the former
    if isinstance(kinds, list):
        keeping = sum(isinstance(kind, str) and keeps_keys(kind) for kind in kinds)
    else:
        keeping = len(attending) if isinstance(attending, list) else layers
    return keeping if keeping < layers else None


def _ffn_size(sizes: Mapping[str, Any], hidden: int, tensors: Tensors) -> int:
    """What the first down projection takes in: a family may round the config's number. Else that number."""
    for name, shape in tensors.items():
        if len(shape) == 2 and hidden in shape and hidden and is_down_projection(name.removesuffix(".weight")):
            return prod(shape) // hidden
    return _size(sizes, "intermediate_size", "n_inner") or 4 * hidden


def count_parameters(tensors: Tensors, *, tied: bool) -> int:
    """Numbers of all tensors; without constants, and with a tied matrix once though it may be stored twice."""
    return sum(
        prod(shape)
        for name, shape in tensors.items()
        if not CONSTANTS.search(name) and not (tied and HEAD.search(name))
    )


def headers(folder: Path) -> Tensors:
    """Name and shape of every tensor in a folder's weights. Raises `ModelError`."""
    return {
        name: tuple(item["shape"])
        for path in weight_files(folder)
        for name, item in _header(path).items()
        if name != "__metadata__"
    }


def _header(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > MAX_HEADER_BYTES:
                raise ValueError("its header is too long")
            header: dict[str, Any] = json.loads(file.read(length))
    except (OSError, ValueError, struct.error) as error:
        raise ModelError(f"{path} is no safetensors file: {error}") from error
    return header


def _size(sizes: Mapping[str, Any], *names: str) -> int:
    """The first of these that is a whole number, else 0, which the entry refuses."""
    return next((value for name in names if type(value := sizes.get(name)) is int), 0)


def _whole(value: Any) -> int:
    """A whole number or a switch as it is, else 0."""
    return value if isinstance(value, int) else 0
