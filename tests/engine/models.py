"""Small random models of several architectures, with a small tokenizer: fast, and never trivial.

Norm weights and biases are drawn at random, so that a doubled, missing or misplaced norm shows in the logits.
"""

import functools

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    GraniteConfig,
    Lfm2Config,
    LlamaConfig,
    MistralConfig,
    Phi3Config,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

from engine.model import LoadedModel

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ROWS = 320  # of the embedding: a few more than the tokenizer has entries
WINDOW = 16
CONTEXT = 512

CHATML = (
    "{%- for message in messages -%}"
    r"{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' -}}"
    "{%- endfor -%}"
    r"{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)

_CORPUS = [
    "The capital of France is Paris. The capital of China is Beijing.",
    "the the the the cat sat on the mat and then the dog sat there too",
    "What is seen is what is said; one two three four five six seven eight nine ten",
    'system user assistant {"name": "value", "number": 12}',
]


@functools.cache
def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE of about 300 entries with a ChatML template; every string has an exact round trip."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(_CORPUS, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = CHATML
    return tokenizer


def _shape() -> dict[str, int]:
    return {
        "vocab_size": ROWS,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": CONTEXT,
    }


CONFIGS: dict[str, PreTrainedConfig] = {
    "llama": LlamaConfig(**_shape(), num_key_value_heads=2),
    "qwen2": Qwen2Config(**_shape(), num_key_value_heads=2),
    "qwen3": Qwen3Config(**_shape(), num_key_value_heads=2, head_dim=16),
    "gpt2": GPT2Config(
        vocab_size=ROWS, n_embd=32, n_layer=2, n_head=4, n_positions=CONTEXT, bos_token_id=0, eos_token_id=0
    ),
    "capped": Gemma2Config(
        **_shape() | {"num_hidden_layers": 3},
        num_key_value_heads=2,
        head_dim=8,
        sliding_window=WINDOW,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=4.0,
        query_pre_attn_scalar=20,
    ),
    "full": LlamaConfig(**_shape(), num_key_value_heads=4),
    "fused": Phi3Config(**_shape(), num_key_value_heads=2, partial_rotary_factor=0.5, eos_token_id=0, pad_token_id=0),
    "multiplied": GraniteConfig(
        **_shape(), num_key_value_heads=2, residual_multiplier=0.3, attention_multiplier=0.2, logits_scaling=2.0
    ),
    "sliding": MistralConfig(**_shape(), num_key_value_heads=2, sliding_window=WINDOW),
    "hybrid": Lfm2Config(
        **_shape() | {"num_hidden_layers": 3},
        num_key_value_heads=2,
        layer_types=["conv", "full_attention", "conv"],
    ),
    "mixed": Gemma3TextConfig(
        **_shape() | {"num_hidden_layers": 4},
        num_key_value_heads=2,
        head_dim=8,
        sliding_window=WINDOW,
        layer_types=["sliding_attention", "full_attention"] * 2,
    ),
}


@functools.cache
def tiny(name: str) -> LoadedModel:
    """A small random model by the name of its config, the same weights each time. Logits spread over about ±5."""
    tokenizer = tiny_tokenizer()
    config = CONFIGS[name]
    ids = [tokenizer.convert_tokens_to_ids(mark) for mark in ("<|im_end|>", "<|endoftext|>")]
    config.bos_token_id, config.eos_token_id, config.pad_token_id = ids[1], ids, ids[1]
    with torch.random.fork_rng():
        torch.manual_seed(len(name))
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        for label, parameter in model.named_parameters():
            torch.nn.init.normal_(parameter, mean=1.0 if "norm" in label or "ln_" in label else 0.0, std=0.3)
    return LoadedModel.of(model, tokenizer, model_id="tiny", title=f"Tiny {name}")
