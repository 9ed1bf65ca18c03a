"""Published sizes: models built from the catalogue's shapes on the meta device, against tests/golden/facts.json."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, PretrainedConfig, PreTrainedModel

from engine.catalog import Entry, HubSource, load_catalog
from engine.facts import kv_bytes_per_token
from tests.hub import require_hub

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "facts.json").read_text(encoding="utf-8"))
IDS = [entry.id for entry in load_catalog().models]
#: The golden file names the quantisation of the embedded file; the shape is that of the model.
GOLDEN_NAMES = {"smollm2-135m-instruct": "smollm2-135m-instruct-q4_1"}
#: transformers' `model_type` of those that are no Llama.
FAMILIES = {"qwen2.5-0.5b-instruct": "qwen2", "qwen2.5-7b-instruct": "qwen2", "qwen2.5-72b": "qwen2", "gpt2": "gpt2"}
#: Field of the catalogue → name in the golden file.
FIELDS = {
    "layers": "layers",
    "hidden_size": "hidden",
    "heads": "heads",
    "kv_heads": "kv_heads",
    "head_dim": "head_dim",
    "ffn_size": "ffn",
    "vocab_rows": "vocab_rows",
    "context": "context",
    "parameters": "parameters",
    "tied_embeddings": "tied",
}


def golden(model_id: str) -> dict[str, Any]:
    return GOLDEN[GOLDEN_NAMES.get(model_id, model_id)]["config"]


def config_of(entry: Entry) -> PretrainedConfig:
    """transformers' own config of that family with the entry's sizes."""
    family = FAMILIES.get(entry.id, "llama")
    if family == "gpt2":
        sizes = {
            "n_layer": entry.layers,
            "n_embd": entry.hidden_size,
            "n_head": entry.heads,
            "n_positions": entry.context,
        }
    else:
        sizes = {
            "num_hidden_layers": entry.layers,
            "hidden_size": entry.hidden_size,
            "num_attention_heads": entry.heads,
            "num_key_value_heads": entry.kv_heads,
            "intermediate_size": entry.ffn_size,
            "max_position_embeddings": entry.context,
        }
    return AutoConfig.for_model(family, vocab_size=entry.vocab_rows, tie_word_embeddings=entry.tied_embeddings, **sizes)


@pytest.fixture(scope="module", params=IDS)
def built(request: pytest.FixtureRequest) -> Iterator[tuple[Entry, PreTrainedModel]]:
    entry = load_catalog().find(request.param)
    with torch.device("meta"):
        yield entry, AutoModelForCausalLM.from_config(config_of(entry))


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("model_id", IDS)
def test_catalogue_agrees_with_every_golden_size(model_id: str) -> None:
    entry, facts = load_catalog().find(model_id), golden(model_id)
    assert {name: facts[key] for name, key in FIELDS.items() if key in facts} == {
        name: getattr(entry, name) for name, key in FIELDS.items() if key in facts
    }


@pytest.mark.parametrize("model_id", IDS)
def test_catalogue_agrees_with_every_golden_cache_price(model_id: str) -> None:
    entry, facts = load_catalog().find(model_id), golden(model_id)
    prices = {"kv_bytes_per_token_fp32": 4, "kv_bytes_per_token_bf16": 2}
    known = {name: itemsize for name, itemsize in prices.items() if name in facts}
    assert known
    for name, itemsize in known.items():
        assert entry.kv_bytes_per_token(itemsize) == facts[name]


def test_parameters_and_rows_are_those_of_the_built_model(built: tuple[Entry, PreTrainedModel]) -> None:
    entry, model = built
    assert count(model) == entry.parameters
    assert tuple(model.get_input_embeddings().weight.shape) == (entry.vocab_rows, entry.hidden_size)
    assert model.get_output_embeddings().out_features == entry.vocab_rows


def test_the_cache_a_forward_fills_has_the_priced_shape(built: tuple[Entry, PreTrainedModel]) -> None:
    entry, model = built
    cache = DynamicCache(config=model.config)
    model(torch.zeros((1, 131), dtype=torch.long, device="meta"), cache=cache)
    shapes = {tuple(tensor.shape) for layer in cache.layers for tensor in (layer.keys, layer.values)}
    assert shapes == {(1, entry.kv_heads, 131, entry.head_dim)}
    itemsize = cache.layers[0].keys.itemsize
    measured = sum(tensor.nbytes for layer in cache.layers for tensor in (layer.keys, layer.values))
    assert measured == 131 * entry.kv_bytes_per_token(itemsize)


def test_qwen_half_billion_in_detail() -> None:
    entry, facts = load_catalog().find("qwen2.5-0.5b-instruct"), golden("qwen2.5-0.5b-instruct")
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config_of(entry))
    layer = model.model.layers[0]
    assert count(layer) == facts["parameters_layer"]
    assert count(layer.mlp) == facts["parameters_ffn"]
    assert count(layer.self_attn) == facts["parameters_attention"]
    assert count(model.get_input_embeddings()) == facts["parameters_embedding"]
    assert facts["kv_shape_layer0_131"] == [1, entry.kv_heads, 131, entry.head_dim]
    assert facts["kv_mib_fp32"]
    for tokens, mebibytes in facts["kv_mib_fp32"].items():
        assert round(int(tokens) * entry.kv_bytes_per_token(4) / 2**20, 2) == mebibytes


def test_llama_at_128_k_takes_16_gib() -> None:
    facts = golden("llama-3-8b")
    size = 131_072 * kv_bytes_per_token(facts["layers"], facts["kv_heads"], facts["head_dim"], 2)
    assert size / 2**30 == facts["kv_gib_at_131072_bf16"]


@pytest.mark.hub
@pytest.mark.parametrize(
    "entry", [e for e in load_catalog().models if isinstance(e.source, HubSource)], ids=lambda e: e.id
)
def test_published_config_is_that_of_the_catalogue(entry: Entry) -> None:
    assert isinstance(entry.source, HubSource)
    require_hub()
    published = AutoConfig.from_pretrained(entry.source.repo, revision=entry.source.revision)
    ours = config_of(entry)
    names = (
        "model_type",
        "vocab_size",
        "num_hidden_layers",
        "hidden_size",
        "num_attention_heads",
        "tie_word_embeddings",
    )
    assert {name: getattr(published, name) for name in names} == {name: getattr(ours, name) for name in names}
    assert published.max_position_embeddings == entry.context
    facts = golden(entry.id)
    if "rope_theta" in facts:
        assert published.rope_parameters["rope_theta"] == facts["rope_theta"]
    if "rms_eps" in facts:
        assert published.rms_norm_eps == facts["rms_eps"]
