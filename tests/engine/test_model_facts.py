"""Facts read off a model: six architectures from their configs, and the embedded one against golden numbers."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import AddedToken
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    PretrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

from engine.catalog import Entry, load_catalog
from engine.facts import ModelFacts, SpecialMark
from engine.model import LoadedModel
from engine.model_facts import read_facts
from engine.probes.model import measure
from tests.engine.models import tiny_tokenizer

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "facts.json").read_text(encoding="utf-8"))
SMOL = GOLDEN["smollm2-135m-instruct-q4_1"]

GROUPED: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 32,
    "intermediate_size": 80,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "eos_token_id": 2,
    "bos_token_id": 1,
    "pad_token_id": 0,
}
SLIDING_THEN_FULL = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]
CONFIGS: dict[str, PretrainedConfig] = {
    "llama": LlamaConfig(**GROUPED, tie_word_embeddings=False),
    "qwen2": Qwen2Config(**GROUPED, tie_word_embeddings=True),
    "qwen3": Qwen3Config(**GROUPED, head_dim=24, tie_word_embeddings=True),
    "gemma2": Gemma2Config(**GROUPED, head_dim=16, sliding_window=8),
    "gemma3": Gemma3TextConfig(**GROUPED, head_dim=16, sliding_window=8, layer_types=SLIDING_THEN_FULL),
    "gpt2": GPT2Config(
        vocab_size=320, n_embd=32, n_layer=4, n_head=4, n_positions=256, eos_token_id=2, bos_token_id=1, pad_token_id=0
    ),
}


def build(name: str) -> LoadedModel:
    model = AutoModelForCausalLM.from_config(CONFIGS[name], dtype=torch.float32)
    return LoadedModel.of(model, tiny_tokenizer(), model_id=name, title=name.title())


@pytest.fixture(scope="module", params=sorted(CONFIGS))
def built(request: pytest.FixtureRequest) -> LoadedModel:
    return build(request.param)


def test_sizes_of_every_architecture(built: LoadedModel) -> None:
    facts = built.facts
    kv_heads = {"gpt2": 4}.get(facts.model_id, 2)
    head_dim = {"qwen3": 24, "gemma2": 16, "gemma3": 16}.get(facts.model_id, 8)
    ffn = {"gpt2": 128}.get(facts.model_id, 80)
    assert (facts.layers, facts.hidden_size, facts.heads) == (4, 32, 4)
    assert (facts.kv_heads, facts.head_dim, facts.ffn_size) == (kv_heads, head_dim, ffn)
    assert (facts.vocab_rows, facts.context, facts.eos_ids) == (320, 256, (2,))
    assert (facts.dtype, facts.itemsize, facts.device) == ("float32", 4, "cpu")
    assert facts.architecture == type(built.model).__name__
    assert facts.tied_embeddings == (facts.model_id != "llama")


def test_parameters_count_each_number_once(built: LoadedModel) -> None:
    storages = {
        p.data_ptr(): p.numel() for p in built.model.state_dict(keep_vars=True).values() if p.is_floating_point()
    }
    buffers = sum(b.numel() for name, b in built.model.named_buffers() if name in built.model.state_dict())
    assert built.facts.parameters == sum(storages.values()) - buffers


def test_priced_bytes_are_those_of_a_real_cache(built: LoadedModel) -> None:
    cache = built.model(torch.tensor([[5, 6, 7]]), use_cache=True).cache
    measured = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert measured == 3 * built.facts.kv_bytes_per_token


def test_layer_kinds_and_window_come_from_the_cache() -> None:
    assert build("llama").facts.layer_kinds == ("full",) * 4
    assert build("llama").facts.sliding_window is None
    assert build("gemma2").facts.layer_kinds == ("sliding", "full", "sliding", "full")
    assert build("gemma3").facts.layer_kinds == ("sliding", "sliding", "sliding", "full")
    assert build("gemma3").facts.sliding_window == 8


def test_a_model_is_ready_to_run(built: LoadedModel) -> None:
    assert not built.model.training
    assert not any(parameter.requires_grad for parameter in built.model.parameters())
    assert built.model.config._attn_implementation == "decodescope"


def test_eos_ids_of_generation_config_come_first_and_none_twice() -> None:
    model = AutoModelForCausalLM.from_config(CONFIGS["llama"])
    model.generation_config.eos_token_id = [7, 2]
    facts = LoadedModel.of(model, tiny_tokenizer(), model_id="x", title="X").facts
    assert facts.eos_ids == (7, 2)
    model.generation_config.eos_token_id = None
    model.config.eos_token_id = None
    assert LoadedModel.of(model, tiny_tokenizer(), model_id="x", title="X").facts.eos_ids == ()


def test_the_three_vocabulary_numbers_and_the_marks() -> None:
    facts = build("llama").facts
    assert (facts.vocab_base, facts.vocab_with_special, facts.vocab_rows) == (297, 300, 320)
    assert facts.special_marks == (
        SpecialMark("<|endoftext|>", 0, ("pad",)),
        SpecialMark("<|im_start|>", 1, ("control",)),
        SpecialMark("<|im_end|>", 2, ("eos",)),
    )


def test_marks_added_later_are_counted_and_an_ordinary_one_has_no_role() -> None:
    tokenizer = tiny_tokenizer().__class__(tokenizer_object=tiny_tokenizer().backend_tokenizer)
    tokenizer.add_tokens([AddedToken("<tool_call>", special=False)])
    tokenizer.add_special_tokens({"bos_token": "<s>"})
    model = AutoModelForCausalLM.from_config(CONFIGS["llama"])
    facts = LoadedModel.of(model, tokenizer, model_id="x", title="X").facts
    assert (facts.vocab_base, facts.vocab_with_special) == (297, 302)
    assert facts.special_marks[-2:] == (SpecialMark("<tool_call>", 300, ()), SpecialMark("<s>", 301, ("bos",)))


def test_a_template_per_purpose_gives_the_default_one() -> None:
    tokenizer = tiny_tokenizer().__class__(tokenizer_object=tiny_tokenizer().backend_tokenizer)
    model = AutoModelForCausalLM.from_config(CONFIGS["llama"])
    tokenizer.chat_template = {"default": "plain", "tool_use": "other"}
    assert LoadedModel.of(model, tokenizer, model_id="x", title="X").facts.chat_template == "plain"
    tokenizer.chat_template = None
    assert LoadedModel.of(model, tokenizer, model_id="x", title="X").facts.chat_template is None


def test_facts_of_half_precision() -> None:
    model = AutoModelForCausalLM.from_config(CONFIGS["qwen2"], dtype=torch.bfloat16)
    facts = LoadedModel.of(model, tiny_tokenizer(), model_id="x", title="X").facts
    assert (facts.dtype, facts.itemsize) == ("bfloat16", 2)
    assert facts.kv_bytes_per_token == build("qwen2").facts.kv_bytes_per_token // 2


class Packed(torch.nn.Parameter):
    """Stands in for bitsandbytes' Params4bit: two numbers in a byte, and the shape that they had."""

    quant_state: SimpleNamespace


def test_weights_of_four_bits_are_counted_as_the_numbers_that_they_are() -> None:
    loaded = build("llama")
    for _, module in loaded.model.named_modules():
        if isinstance(module, torch.nn.Linear) and module is not loaded.model.get_output_embeddings():
            shape = module.weight.shape
            module.weight = Packed(torch.zeros(shape.numel() // 2, 1, dtype=torch.uint8), requires_grad=False)
            module.weight.quant_state = SimpleNamespace(shape=shape)
    facts = read_facts(loaded.model, loaded.tokenizer, model_id="x", title="X")
    assert (facts.parameters, facts.ffn_size) == (loaded.facts.parameters, loaded.facts.ffn_size)
    found = measure(loaded.model, facts)
    assert found.counted == facts.parameters
    assert sum(weight.nbytes for weight in found.weights) == sum(one.nbytes for one in loaded.model.parameters())


def test_embedded_facts_are_the_golden_ones(embedded: LoadedModel) -> None:
    names = {
        "layers": "layers",
        "hidden_size": "hidden",
        "heads": "heads",
        "kv_heads": "kv_heads",
        "head_dim": "head_dim",
        "ffn_size": "ffn",
        "vocab_rows": "vocab_rows",
        "context": "context",
        "tied_embeddings": "tied",
        "parameters": "parameters",
        "kv_bytes_per_token": "kv_bytes_per_token_fp32",
    }
    assert {names[name]: getattr(embedded.facts, name) for name in names} == SMOL["config"]


def test_embedded_facts_agree_with_the_catalogue(embedded: LoadedModel) -> None:
    entry = load_catalog().find(embedded.facts.model_id)
    shared = {field.name for field in dataclasses.fields(ModelFacts)} & set(Entry.model_fields)
    assert {"layers", "kv_heads", "head_dim", "parameters", "title"} <= shared
    assert {name: getattr(embedded.facts, name) for name in shared} == {name: getattr(entry, name) for name in shared}


def test_embedded_vocabulary_and_marks(embedded: LoadedModel) -> None:
    facts = embedded.facts
    assert (facts.vocab_base, facts.vocab_with_special, facts.vocab_rows) == (49_135, 49_152, 49_152)
    roles = {mark.text: mark.roles for mark in facts.special_marks}
    assert len(roles) == 17
    assert roles["<|im_start|>"] == ("bos",)
    assert roles["<|im_end|>"] == ("eos", "pad")
    assert facts.eos_ids == (2,)
    assert facts.chat_template is not None
    assert "named SmolLM" in facts.chat_template


def test_embedded_model_says_paris(embedded: LoadedModel) -> None:
    golden = SMOL["weights_embedded"]
    ids = embedded.tokenizer(golden["prompt"], return_tensors="pt").input_ids
    with torch.inference_mode():
        probabilities = embedded.model(ids).logits[0, -1].softmax(-1)
    assert int(probabilities.argmax()) == golden["paris_id"]
    assert embedded.tokenizer.decode([golden["paris_id"]]) == " Paris"
    assert float(probabilities.max()) == pytest.approx(golden["p_paris"], abs=5e-5)


def test_embedded_chat_prompt_has_the_golden_length(embedded: LoadedModel) -> None:
    golden = SMOL["weights_embedded"]
    messages = [{"role": "user", "content": golden["chat_question"]}]
    ids = embedded.tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    assert len(ids) == golden["chat_prompt_tokens"]
