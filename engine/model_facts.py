"""Read a model's facts off the model itself: its modules, its config, its tokenizer and the cache it asks for."""

from collections.abc import Iterable
from math import prod

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from engine.facts import LayerKind, ModelFacts, SpecialMark
from engine.kv_cache import layer_kind, new_cache
from engine.sizes import is_down_projection, kv_heads


def read_facts(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, *, model_id: str, title: str) -> ModelFacts:
    """The facts of any causal LM of transformers; works on the meta device too.

    `parameters` counts a tied matrix once. `heads`, `kv_heads` and `head_dim` are the config's, which may differ from
    single layers of a model whose layers are not alike.
    """
    config = model.config.get_text_config(decoder=True)
    cache_layers = new_cache(config).layers
    kinds: tuple[LayerKind, ...] = tuple(layer_kind(layer) for layer in cache_layers)
    windows = [window for window in (getattr(layer, "sliding_window", None) for layer in cache_layers) if window]
    vocabulary = tokenizer.get_vocab().values()
    eos_ids = _eos_ids(model)
    heads = int(config.num_attention_heads)
    return ModelFacts(
        model_id=model_id,
        title=title,
        architecture=type(model).__name__,
        layers=int(config.num_hidden_layers),
        hidden_size=int(config.hidden_size),
        heads=heads,
        kv_heads=kv_heads(lambda name: getattr(config, name, None), heads),
        head_dim=int(getattr(config, "head_dim", None) or config.hidden_size // heads),
        ffn_size=_ffn_size(model, config),
        vocab_rows=_weight(model.get_input_embeddings()).shape[0],
        vocab_base=len(set(vocabulary) - set(tokenizer.added_tokens_decoder)),
        vocab_with_special=len(set(vocabulary)),
        context=int(config.max_position_embeddings),
        parameters=sum(prod(shape_of(parameter)) for parameter in model.parameters()),
        tied_embeddings=_weight(model.get_output_embeddings()) is _weight(model.get_input_embeddings()),
        dtype=str(model.dtype).removeprefix("torch."),
        itemsize=model.dtype.itemsize,
        device=str(model.device),
        layer_kinds=kinds,
        sliding_window=windows[0] if windows else None,
        eos_ids=eos_ids,
        special_marks=_special_marks(tokenizer, eos_ids),
        chat_template=_chat_template(tokenizer),
    )


def shape_of(parameter: torch.Tensor) -> tuple[int, ...]:
    """Its shape; weights of 4 bits lie packed, two in a byte, and keep their shape beside."""
    packed = getattr(parameter, "quant_state", None)
    return tuple(parameter.shape if packed is None else packed.shape)


def _weight(module: nn.Module) -> torch.Tensor:
    weight = module.weight
    assert isinstance(weight, torch.Tensor)
    return weight


def _ffn_size(model: PreTrainedModel, config: PretrainedConfig) -> int:
    """What the first down projection takes in: a family may round the config's number (LFM2).

    Where none is found (mixtures of experts) the config's: GPT-2 names it `n_inner`, and leaves it out where it is four
    times the hidden size.
    """
    for name, module in model.get_decoder().named_modules():
        if is_down_projection(name):
            rows = getattr(module, "in_features", None)
            return int(_weight(module).shape[0] if rows is None else rows)  # GPT-2's own kind of linear map
    size = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None)
    return int(size or 4 * config.hidden_size)


def _eos_ids(model: PreTrainedModel) -> tuple[int, ...]:
    """Ids that end an answer: those that `generate` watches, then those that only the config names."""
    sources = (model.generation_config, model.config)
    given = (_as_ids(getattr(source, "eos_token_id", None)) for source in sources if source is not None)
    return tuple(dict.fromkeys(token_id for ids in given for token_id in ids))


def _as_ids(value: int | Iterable[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)


def _special_marks(tokenizer: PreTrainedTokenizerFast, eos_ids: tuple[int, ...]) -> tuple[SpecialMark, ...]:
    """Every entry that was added to the vocabulary as a whole, by id.

    A mark that no role claims is "control" where the tokenizer calls it special, and has no role where it does not.
    """
    roles: dict[int, set[str]] = {}
    for role in ("bos", "eos", "pad", "unk"):
        token_id = getattr(tokenizer, f"{role}_token_id")
        if token_id is not None:
            roles.setdefault(token_id, set()).add(role)
    for token_id in eos_ids:
        roles.setdefault(token_id, set()).add("eos")
    return tuple(
        SpecialMark(
            text=added.content,
            token_id=token_id,
            roles=tuple(sorted(roles.get(token_id, {"control"} if added.special else ()))),
        )
        for token_id, added in sorted(tokenizer.added_tokens_decoder.items())
    )


def _chat_template(tokenizer: PreTrainedTokenizerFast) -> str | None:
    template = tokenizer.chat_template
    return template.get("default") if isinstance(template, dict) else template
