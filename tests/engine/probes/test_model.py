"""Every number of a model is counted once and lies where its shape says; hard parameters are the modules' own."""

from math import prod
from typing import get_args

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    FalconConfig,
    Gemma2Config,
    GPT2Config,
    GPTJConfig,
    GPTNeoXConfig,
    LlamaConfig,
    OPTConfig,
    PersimmonConfig,
    Phi3Config,
    PreTrainedConfig,
    Qwen2Config,
    Qwen2MoeConfig,
)

from engine.answers.model import Model, Part
from engine.model import LoadedModel
from engine.probes.model import measure, model
from tests.engine.models import CONFIGS, ROWS, tiny, tiny_tokenizer
from tests.engine.probes.test_feed_forward import SHAPE, other
from tests.engine.probes.test_lens import FACTS, talk


def counts(found: Model) -> dict[str, int]:
    return {part: found.numbers(part) for part in get_args(Part) if found.numbers(part)}


def test_a_llama_by_hand(llama: LoadedModel) -> None:
    """320 rows of 32; 2 layers with 4 heads of 8 over 2 KV heads and 64 neurons; 2 norms a layer and a final one.

    query and output 32 · 32 = 1,024 a layer, key and value 16 · 32 = 512, gate, up and down 64 · 32 = 2,048,
    embedding 320 · 32 = 10,240, the untied head as much, norms 5 · 32 = 160.
    """
    found = model(talk(llama))
    assert counts(found) == {
        "embedding": 10240, "query": 2048, "key": 1024, "value": 1024, "output": 2048, "gate": 4096, "up": 4096,
        "down": 4096, "norms": 160, "head": 10240,
    }  # fmt: skip
    assert found.layers("key") == (512, 512)
    assert found.layers("norms") == (64, 64)
    assert found.layers("embedding") == ()
    assert (found.counted, found.parameters) == (39072, 39072)
    assert found.by_dtype == {"float32": (39072, 4 * 39072)}
    assert found.nbytes("gate") == 4 * 4096
    assert (found.norm, found.norm_eps, found.activation, found.gated) == ("LlamaRMSNorm", 1e-6, "silu", True)
    assert (found.rope_theta, found.rope_type, found.learned_positions) == (10000.0, "default", False)
    assert (found.query_key_norm, found.attention_softcap, found.final_softcap) == (False, None, None)
    assert model(talk(llama)) is found


def test_a_gpt2_by_hand() -> None:
    """Conv1D with biases: c_attn 32 · 96 + 96 shared out in three, c_fc 32 · 128 + 128, c_proj 128 · 32 + 32."""
    found = measure(tiny("gpt2").model, tiny("gpt2").facts)
    assert counts(found) == {
        "embedding": 320 * 32, "positions": 512 * 32, "query": 2 * 1056, "key": 2 * 1056, "value": 2 * 1056,
        "output": 2 * 1056, "up": 2 * 4224, "down": 2 * 4128, "norms": 5 * 64,
    }  # fmt: skip
    assert (found.norm, found.activation, found.gated) == ("LayerNorm", "gelu_new", False)
    assert (found.learned_positions, found.rope_theta) == (True, None)


@pytest.mark.parametrize("name", list(CONFIGS))
def test_every_number_is_counted_once(name: str) -> None:
    loaded = tiny(name)
    found = measure(loaded.model, loaded.facts)
    assert found.counted == found.parameters == loaded.model.num_parameters() == loaded.facts.parameters
    assert sum(numbers for numbers, _ in found.by_dtype.values()) == found.counted
    assert sum(found.nbytes(part) for part in get_args(Part)) == sum(p.nbytes for p in loaded.model.parameters())
    for part in get_args(Part):
        outside = sum(one.numbers for one in found.weights if one.part == part and one.layer is None)
        assert sum(found.layers(part)) + outside == found.numbers(part)
    tied = loaded.model.get_output_embeddings().weight is loaded.model.get_input_embeddings().weight
    assert (found.numbers("head") == 0) is tied
    unfused = [one for one in found.weights if prod(one.shape) == one.numbers]
    assert {one.name for one in unfused} <= dict(loaded.model.named_parameters()).keys()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (Phi3Config(**SHAPE), {"query": 2048, "key": 1024, "gate": 4096, "up": 4096, "down": 4096}),
        (Qwen2Config(**SHAPE), {"query": 2048 + 64, "key": 1024 + 32, "value": 1024 + 32, "output": 2048}),
        (
            Qwen2MoeConfig(
                **SHAPE, mlp_only_layers=[0], num_experts=4, moe_intermediate_size=16, shared_expert_intermediate_size=8
            ),
            # layer 0 dense; layer 1: 4 · (32 · 32 + 32 · 16) in experts, 8 · 32 thrice shared, a router and a gate
            {"experts": 6144, "gate": 2048 + 256, "down": 2048 + 256, "other": 4 * 32 + 32},
        ),
    ],
    ids=["phi3", "qwen2", "mixture"],
)
def test_fused_projections_biases_and_experts_lie_where_they_belong(
    config: PreTrainedConfig, expected: dict[str, int]
) -> None:
    loaded = other(config)
    found = measure(loaded.model, loaded.facts)
    assert {part: found.numbers(part) for part in expected} == expected
    assert found.counted == found.parameters


PLAIN = {name: value for name, value in SHAPE.items() if name != "num_key_value_heads"}


@pytest.mark.parametrize(
    ("config", "kv_heads", "feed_forward"),
    [
        (GPTNeoXConfig(**PLAIN), 4, 64),
        (FalconConfig(**PLAIN), 1, 128),
        (FalconConfig(**PLAIN, num_kv_heads=2, new_decoder_architecture=True), 2, 128),
        (PersimmonConfig(**PLAIN), 4, 64),
        (GPTJConfig(vocab_size=ROWS, n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4), 4, 128),
        (OPTConfig(**PLAIN, ffn_dim=96, word_embed_proj_dim=32), 4, 96),
    ],
    ids=["neox", "falcon", "new falcon", "persimmon", "gptj", "opt"],
)
def test_attention_and_feed_forward_are_found_under_every_family_s_names(
    config: PreTrainedConfig, kv_heads: int, feed_forward: int
) -> None:
    """Two layers of 4 heads of 8: biases, of as many numbers as a matrix has rows, are there in some of them."""
    loaded = other(config)
    found = measure(loaded.model, loaded.facts)
    assert (loaded.facts.kv_heads, loaded.facts.ffn_size) == (kv_heads, feed_forward)
    sizes = {"query": 32, "key": 8 * kv_heads, "value": 8 * kv_heads, "output": 32, "up": feed_forward, "down": 32}
    for part, rows in sizes.items():
        columns = feed_forward if part == "down" else 32
        assert found.numbers(part) in (2 * rows * columns, 2 * rows * (columns + 1)), part  # type: ignore[arg-type]
    assert found.numbers("other") == 0
    assert found.norm == "LayerNorm"


def test_caps_window_and_query_key_norm_are_told() -> None:
    capped, qwen = (measure(tiny(name).model, tiny(name).facts) for name in ("capped", "qwen3"))
    assert (capped.attention_softcap, capped.final_softcap, capped.activation) == (2.0, 4.0, "gelu_pytorch_tanh")
    assert (qwen.query_key_norm, capped.query_key_norm) == (True, False)


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SHAPE | {"tie_word_embeddings": True}),
        Gemma2Config(**SHAPE, head_dim=8),
        GPT2Config(vocab_size=ROWS, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0),
    ],
    ids=["llama", "gemma2", "gpt2"],
)
def test_it_works_without_any_memory_behind_the_weights(config: PreTrainedConfig) -> None:
    """On the meta device every tensor lies at address 0: shared ones are told by identity, not by address."""
    with torch.device("meta"):
        lm = AutoModelForCausalLM.from_config(config)
    loaded = LoadedModel.of(lm, tiny_tokenizer(), model_id="tiny", title="Tiny")
    found = measure(lm, loaded.facts)
    assert found.counted == found.parameters
    assert found.numbers("head") == 0


def test_the_embedded_model_is_as_published(embedded: LoadedModel) -> None:
    """Recipe: sizes of `config` in the golden facts, multiplied by hand (30 layers, 9 heads of 64 over 3 KV heads)."""
    golden = FACTS["smollm2-135m-instruct-q4_1"]["config"]
    found = measure(embedded.model, embedded.facts)
    hidden, layers, ffn = golden["hidden"], golden["layers"], golden["ffn"]
    assert counts(found) == {
        "embedding": golden["vocab_rows"] * hidden,
        "query": layers * hidden * 576, "key": layers * hidden * 192, "value": layers * hidden * 192,
        "output": layers * hidden * 576, "gate": layers * hidden * ffn, "up": layers * hidden * ffn,
        "down": layers * hidden * ffn, "norms": (2 * layers + 1) * hidden,
    }  # fmt: skip
    assert found.counted == golden["parameters"] == 134515008
    assert (found.rope_theta, found.norm_eps) == (100000.0, pytest.approx(1e-5))
