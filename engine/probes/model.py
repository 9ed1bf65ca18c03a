"""What the loaded model is made of: its hard parameters, and where its numbers lie."""

import weakref
from collections.abc import Iterator
from math import prod

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from engine.anatomy import FINAL_NORM, child
from engine.answers.model import Model, Part, Weight
from engine.conversation import Conversation
from engine.facts import ModelFacts
from engine.model_facts import shape_of
from engine.sizes import FEED_FORWARD

#: The last telling name on the way to a parameter, and the part of the layer that it belongs to. Two parts: fused.
_NAMES: dict[str, tuple[Part, ...]] = {
    "q_proj": ("query",),
    "k_proj": ("key",),
    "v_proj": ("value",),
    "o_proj": ("output",),
    "c_attn": ("query", "key", "value"),
    "qkv_proj": ("query", "key", "value"),
    "query_key_value": ("query", "key", "value"),
    "gate_proj": ("gate",),
    "up_proj": ("up",),
    "gate_up_proj": ("gate", "up"),
    "c_fc": ("up",),
    "fc1": ("up",),
    "fc_in": ("up",),
    "dense_h_to_4h": ("up",),
    "down_proj": ("down",),
    "fc2": ("down",),
    "fc_out": ("down",),
    "dense_4h_to_h": ("down",),
}
#: The same names mean different things by the module that they stand in.
_IN_FEED_FORWARD: dict[str, tuple[Part, ...]] = {"c_proj": ("down",), "w1": ("gate",), "w2": ("down",), "w3": ("up",)}
_IN_ATTENTION: dict[str, tuple[Part, ...]] = {"c_proj": ("output",), "out_proj": ("output",), "dense": ("output",)}

_MEASURED: weakref.WeakKeyDictionary[PreTrainedModel, "Model"] = weakref.WeakKeyDictionary()


def model(conversation: Conversation) -> Model:
    """What the conversation's model is made of; measured once a loaded model, no forward."""
    loaded = conversation.loaded
    found = _MEASURED.get(loaded.model)
    if found is None:
        found = _MEASURED[loaded.model] = measure(loaded.model, loaded.facts)
    return found


def measure(model: PreTrainedModel, facts: ModelFacts) -> Model:
    """Read off the modules and the config of any causal LM of transformers."""
    config = model.config.get_text_config(decoder=True)
    decoder = model.get_decoder()
    norm = child(decoder, FINAL_NORM)
    names = {name for name, _ in model.named_modules()}
    leaves = {name.rpartition(".")[2] for name in names}
    rope = getattr(config, "rope_parameters", None) or {}
    return Model(
        layer_count=facts.layers,
        norm=type(norm).__name__ if norm is not None else "",
        norm_eps=_eps(norm, config),
        activation=str(_first(config, "hidden_activation", "hidden_act", "activation_function") or ""),
        gated=bool(leaves & {"gate_proj", "gate_up_proj", "w3"}),
        learned_positions=bool(leaves & {"wpe", "embed_positions"}),
        rope_theta=_theta(rope, config) if hasattr(decoder, "rotary_emb") else None,
        rope_type=_rope_type(rope) if hasattr(decoder, "rotary_emb") else None,
        query_key_norm=bool(leaves & {"q_norm", "q_layernorm"}),
        score_scaling=next(
            (s for one in model.modules() if isinstance(s := getattr(one, "scaling", None), float)), None
        ),
        attention_softcap=getattr(config, "attn_logit_softcapping", None),
        final_softcap=getattr(config, "final_logit_softcapping", None),
        weights=tuple(_weights(model, facts)),
        parameters=model.num_parameters(),
    )


def _weights(model: PreTrainedModel, facts: ModelFacts) -> Iterator[Weight]:
    """Every parameter once: `named_parameters` leaves out one that it met before under another name.

    What lies where is told by the names of modules; a name that is not known counts as "other".
    """
    decoder, layers = model.get_decoder(), facts.layers
    blocks = next((one for one in decoder.children() if isinstance(one, nn.ModuleList) and len(one) == layers), None)
    place = {id(one): at for at, block in enumerate(blocks or ()) for one in block.parameters()}
    embedding = {id(one) for one in model.get_input_embeddings().parameters()}
    head = model.get_output_embeddings()
    heads = {id(one) for one in head.parameters()} if head is not None else set()
    for name, parameter in model.named_parameters():
        parts: tuple[Part, ...] = ("other",)
        if id(parameter) in embedding:
            parts = ("embedding",)
        elif id(parameter) in heads:
            parts = ("head",)
        else:
            parts = _parts(name.split(".")[:-1], parameter)
        shares = _shares(parts, facts)
        shape = shape_of(parameter)
        if prod(shape) % sum(shares.values()):
            shares = {"other": 1}
        whole = sum(shares.values())
        for part in shares:
            yield Weight(
                name=name,
                part=part,
                layer=place.get(id(parameter)),
                shape=shape,
                numbers=prod(shape) * shares[part] // whole,
                nbytes=parameter.nbytes * shares[part] // whole,
                dtype=str(parameter.dtype).removeprefix("torch."),
            )


def _parts(path: list[str], parameter: torch.Tensor) -> tuple[Part, ...]:
    """What the modules on the way to a parameter say of it."""
    if "experts" in path:
        return ("experts",)
    owner, leaf = ["", "", *path][-2:]
    if leaf in ("wpe", "embed_positions"):
        return ("positions",)
    if leaf in _NAMES:
        return _NAMES[leaf]
    if owner in FEED_FORWARD and leaf in _IN_FEED_FORWARD:
        return _IN_FEED_FORWARD[leaf]
    if "attn" in owner or "attention" in owner:
        found = _IN_ATTENTION.get(leaf)
        if found is not None:
            return found
    norm = parameter.dim() == 1 and ("norm" in leaf or leaf.startswith("ln_"))
    return ("norms",) if norm else ("other",)


def _shares(parts: tuple[Part, ...], facts: ModelFacts) -> dict[Part, int]:
    """How a fused projection's rows are shared out."""
    rows = {"query": facts.heads, "key": facts.kv_heads, "value": facts.kv_heads}
    return {part: rows.get(part, 1) for part in parts}


def _first(config: PretrainedConfig, *names: str) -> object:
    return next((value for name in names if (value := getattr(config, name, None)) is not None), None)


def _eps(norm: nn.Module | None, config: PretrainedConfig) -> float | None:
    """What the norm itself adds under the root; families name it differently."""
    for name in ("variance_epsilon", "eps"):
        value = getattr(norm, name, None)
        if isinstance(value, float):
            return value
    value = _first(config, "rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_eps")
    return float(value) if isinstance(value, float) else None


def _theta(rope: dict[str, object], config: PretrainedConfig) -> float | None:
    """The base of the rotary angles; of the layers that see everything where kinds of layers have their own."""
    own = rope.get("full_attention", rope)
    value = own.get("rope_theta") if isinstance(own, dict) else None
    value = getattr(config, "rope_theta", None) if value is None else value
    return float(value) if isinstance(value, int | float) else None


def _rope_type(rope: dict[str, object]) -> str | None:
    own = rope.get("full_attention", rope)
    value = own.get("rope_type") if isinstance(own, dict) else None
    return str(value) if value is not None else None
