"""The real converter, on a tiny quantised GGUF file written here: weights, sizes and tokenizer come through."""

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.embedded import convert_gguf
from tests.engine.models import tiny_tokenizer

HIDDEN, FFN, LAYERS = 64, 96, 2
LAYER_MATRICES = {
    "attn_q": (HIDDEN, HIDDEN),
    "attn_k": (HIDDEN // 2, HIDDEN),
    "attn_v": (HIDDEN // 2, HIDDEN),
    "attn_output": (HIDDEN, HIDDEN),
    "ffn_gate": (FFN, HIDDEN),
    "ffn_up": (FFN, HIDDEN),
    "ffn_down": (HIDDEN, FFN),
}


def write_tiny(path: Path) -> dict[str, np.ndarray]:
    """A llama of two layers with the tokenizer of the tests; the matrices' numbers after quantisation, by name."""
    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    _add_tokenizer(writer)

    numbers: dict[str, np.ndarray] = {}

    def add(name: str, *shape: int) -> None:
        values = random.standard_normal(shape).astype(np.float32)
        if len(shape) == 1:
            writer.add_tensor(name, values)
            numbers[name] = values
            return
        kind = gguf.GGMLQuantizationType.Q4_1
        packed = gguf.quantize(values, kind)
        writer.add_tensor(name, packed, raw_dtype=kind)
        numbers[name] = gguf.dequantize(packed, kind)

    add("token_embd.weight", len(tiny_tokenizer()), HIDDEN)
    for layer in range(LAYERS):
        add(f"blk.{layer}.attn_norm.weight", HIDDEN)
        add(f"blk.{layer}.ffn_norm.weight", HIDDEN)
        for name, shape in LAYER_MATRICES.items():
            add(f"blk.{layer}.{name}.weight", *shape)
    add("output_norm.weight", HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return numbers


def _add_tokenizer(writer: gguf.GGUFWriter) -> None:
    tokenizer = tiny_tokenizer()
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(pieces)
    writer.add_token_merges([" ".join(pair) for pair in merges])
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([control if piece.startswith("<|") else normal for piece in pieces])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{{ messages[0]['content'] }}")


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    folder = tmp_path_factory.mktemp("tiny")
    numbers = write_tiny(folder / "tiny.gguf")
    (folder / "out").mkdir()
    convert_gguf(folder / "tiny.gguf", folder / "out")
    return folder / "out", numbers


def test_every_number_is_the_dequantised_one(converted: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, numbers = converted
    model = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, local_files_only=True)
    assert model.dtype == torch.float32
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    np.testing.assert_array_equal(state["model.embed_tokens.weight"], numbers["token_embd.weight"])
    np.testing.assert_array_equal(state["lm_head.weight"], numbers["token_embd.weight"])
    np.testing.assert_array_equal(state["model.norm.weight"], numbers["output_norm.weight"])
    for layer in range(LAYERS):
        for ours, theirs in {
            "self_attn.v_proj": "attn_v",
            "self_attn.o_proj": "attn_output",
            "mlp.gate_proj": "ffn_gate",
            "mlp.up_proj": "ffn_up",
            "mlp.down_proj": "ffn_down",
            "input_layernorm": "attn_norm",
            "post_attention_layernorm": "ffn_norm",
        }.items():
            np.testing.assert_array_equal(
                state[f"model.layers.{layer}.{ours}.weight"], numbers[f"blk.{layer}.{theirs}.weight"]
            )


def test_sizes_come_through(converted: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, _ = converted
    config = json.loads((folder / "config.json").read_text())
    assert "quantization_config" not in config
    sizes = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")
    assert [config[name] for name in sizes] == [LAYERS, HIDDEN, FFN, 4, 2]
    assert (config["max_position_embeddings"], config["tie_word_embeddings"]) == (128, True)


def test_the_tokenizer_comes_through(converted: tuple[Path, dict[str, np.ndarray]]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(converted[0], local_files_only=True)
    text = "<|im_start|>user\nThe capital of France 你好<|im_end|>"
    assert tokenizer(text).input_ids == tiny_tokenizer()(text).input_ids
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (1, 2)
    assert tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False) == "hi"


def test_only_safe_files_are_written(converted: tuple[Path, dict[str, np.ndarray]]) -> None:
    assert {path.suffix for path in converted[0].iterdir()} == {".safetensors", ".json", ".jinja"}
